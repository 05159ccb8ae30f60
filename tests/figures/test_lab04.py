"""The figures of lab 04 show the student's own result: wrong answers look wrong."""

from __future__ import annotations

import pytest

from labkit import figures
from labkit.exercises.lab04.find_batch import Capped
from labkit.figures import batch_size
from tests.exercises.harness import answers_in, solution_of


def solved(exercise_id: str, name: str):
    return answers_in(exercise_id, solution_of(exercise_id))[name]


def test_a_text_weighs_what_is_written_beside_it() -> None:
    upper, lower = figures.token_weights([24, 8]).axes
    assert [text.get_text() for text in upper.texts] == ["2.08% each, 50.0% together", "6.25% each, 50.0% together"]
    assert [text.get_text() for text in lower.texts] == ["3.12% each, 75.0% together", "3.12% each, 25.0% together"]
    assert len(upper.patches) == 4


def test_graphs_that_are_kept_alive_are_seen() -> None:
    def peaks(train_epoch) -> list[float]:
        return [max(line.get_ydata()) for line in figures.accumulation_memory(train_epoch).axes[0].lines]

    together, yours = peaks(solved("04-accumulate", "train_epoch"))
    assert together > 3 * yours
    assert len(set(peaks(batch_size._one_backward))) == 1


def test_both_batch_sizes_and_the_chosen_one_are_marked() -> None:
    upper, lower = figures.two_batch_sizes(solved("04-throughput", "tokens_per_second"), 165.0, 65536.0, 65536).axes
    assert [line.get_xdata()[0] for line in upper.lines[1:]] == [165.0, 65536]
    assert "2 times the fewest steps, 2 times the fewest tokens" in upper.get_title(loc="left")
    steps, work = (line.get_ydata() for line in lower.lines[:2])
    assert (steps - 1) * (work - 1) == pytest.approx(1)


def test_the_staircase_falls_where_a_wave_begins() -> None:
    line = figures.wave_staircase(solved("04-alignment", "tiles_and_waves")).axes[0].lines[0]
    shares = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert shares[1536] == 100 and shares[1544] == pytest.approx(50, abs=1)


@pytest.mark.slow
def test_what_was_predicted_and_what_was_found_stand_where_the_lines_meet_the_limit() -> None:
    figure = figures.predicted_and_found(Capped(12_800_000, longest=48), 37, 36)
    (axes,) = figure.axes
    assert figure._repr_png_()
    by_sum, measured = (dict(zip(*line.get_data(), strict=True)) for line in axes.lines[:2])
    assert by_sum[37] <= 12.8 < by_sum[38] and measured[36] <= 12.8 < measured[37]
    assert axes.get_title(loc="left") == "predicted 37, found 36"


def test_squared_lengths_are_signal_and_noise() -> None:
    figure = figures.gradient_noise(0.5, 40.0)
    _, right = figure.axes
    assert figure._repr_png_()
    sizes, squares = right.lines[0].get_data()
    assert squares == pytest.approx(0.25 + 40 / sizes, rel=0.1)
    assert right.lines[3].get_xdata()[0] == 160
