"""Lab 16's figures of how a sharded model begins: what a way of initializing takes, who reads what others wrote."""

from __future__ import annotations

import pytest

from labkit import figures
from labkit.material.lab16_checkpoint import Recut, Span, killed_while_saving, recut
from labkit.material.lab16_start import Start, cut_whole, init_peaks
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.lab("16")


@pytest.fixture(scope="module")
def checkpoint() -> tuple:
    found = answers_in("16-checkpoint", solution_of("16-checkpoint"))
    return found["save"], found["finish"], found["load"]


def test_who_wrote_and_who_read_is_noted_by_the_elements_themselves(checkpoint) -> None:
    found = recut(*checkpoint, n_old=3, n_new=2, n_elements=7)
    assert found.written == (Span(0, 0, 3), Span(1, 3, 6), Span(2, 6, 7))
    assert found.read == (Span(0, 0, 3), Span(0, 3, 4), Span(1, 4, 6), Span(1, 6, 7))


def test_a_reader_has_the_colours_of_the_writers_that_it_reads() -> None:
    figure = figures.recut_map(Recut(4, (Span(0, 0, 2), Span(1, 2, 4)), (Span(0, 0, 3), Span(1, 3, 4))))
    bars = [(bar.get_x(), bar.get_width(), round(bar.get_y() + bar.get_height() / 2)) for bar in figure.axes[0].patches]
    assert bars == [(0, 2, 0), (2, 2, 0), (0, 2, 1), (2, 1, 1), (3, 1, 2)]
    colours = [bar.get_facecolor() for bar in figure.axes[0].patches]
    assert colours[0] == colours[2] and colours[1] == colours[3] == colours[4]
    assert "Read: rank 0 elements 0 to 2, rank 1 elements 3 to 3." in figure.alt


@pytest.mark.slow
def test_building_whole_takes_the_model_and_cutting_as_it_is_drawn_a_layer() -> None:
    sharded_init = answers_in("16-meta-init", solution_of("16-meta-init"))["sharded_init"]
    found = init_peaks({"whole": cut_whole, "yours": sharded_init}, n_ranks=4, n_layers=8, width=256)
    model = found["whole model"].peak
    assert found["whole"].kept == found["yours"].kept == pytest.approx(model / 4, rel=0.02)
    assert found["whole"].peak > model
    assert found["yours"].peak < model / 4 + 2.2 * 256 * 256 * 4


def test_bars_end_where_the_peaks_do() -> None:
    starts = {"whole": Start(4_000_000, 1_000_000), "yours": Start(1_500_000, 1_000_000)}
    figure = figures.init_peaks(starts | {"whole model": Start(3_000_000, 3_000_000)})
    assert [bar.get_width() for bar in figure.axes[0].patches] == [4, 1, 1.5, 1]
    assert list(figure.axes[0].lines[0].get_xdata()) == [3, 3] and "yours: 1.50 MB at most" in figure.alt


@pytest.mark.full("ranks")
def test_a_rank_that_is_killed_while_it_saves_costs_one_step(checkpoint) -> None:
    lines = killed_while_saving(*checkpoint)
    assert "rank 2" in lines[0] and "SIGKILL" in lines[0]
    assert any("cut short" in line for line in lines)
    assert lines[-3:] == [f"rank {rank} of 3 loads step 2, to the last bit" for rank in range(3)]


@pytest.mark.full("ranks")
def test_writing_over_the_last_checkpoint_costs_both() -> None:
    source = solution_of("16-checkpoint").replace('f"step-{step}/{name}/', 'f"{name}/')
    wrong = answers_in("16-checkpoint", source)
    lines = killed_while_saving(wrong["save"], wrong["finish"], wrong["load"])
    assert not all("to the last bit" in line for line in lines[-3:])
