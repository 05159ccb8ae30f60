"""The figures of lab 05's first half: drawn from the functions that are handed in, and nothing runs off the page."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import pytest
from matplotlib.figure import Figure

from grading.demo.examples import example
from labkit import figures
from labkit.material.lab05 import NeverEnds
from tests.exercises.harness import answers_in, solution_of
from tests.figures.on_page import assert_every_text_is_on_the_page

IDS = ("05-checkpoint", "05-segments", "05-low-memory")
pytestmark = pytest.mark.slow


@cache
def answers() -> dict:
    found: dict = {}
    for exercise_id in IDS:
        found |= answers_in(exercise_id, solution_of(exercise_id))
    return found


def drawn(n_layers: int = 16, **instead) -> Figure:
    ans = {**answers(), **instead}
    names = ("low_memory_backward", "run_in_segments", "checkpoint")
    return figures.backpropagation_memory(*(ans[name] for name in names), n_layers)


@cache
def timelines() -> Figure:
    """As the lab draws it; nobody changes it."""
    return drawn()


@cache
def tradeoff() -> Figure:
    names = ("run_in_segments", "checkpoint", "best_segments")
    return figures.segment_tradeoff(*(answers()[name] for name in names))


@pytest.mark.parametrize("draw", [timelines, tradeoff, figures.kept_and_dropped, figures.who_may_reuse])
def test_every_text_is_on_the_page(draw) -> None:
    figure = draw()
    assert_every_text_is_on_the_page(figure)


def peaks(figure: Figure) -> list[float]:
    return [max(line.get_ydata()) for line in figure.axes[0].lines if len(line.get_ydata()) > 2]


def test_the_three_ways_are_ordered_by_their_peaks() -> None:
    regular, segments, low = peaks(timelines())
    assert regular > 2 * segments > 2 * low


def test_the_memory_is_in_the_figures_on_a_gpu_s_machine_too(monkeypatch) -> None:
    monkeypatch.setattr(import_module("labkit.devices"), "has_gpu", lambda: True)
    ans = answers()
    measured = figures.segment_tradeoff(ans["run_in_segments"], ans["checkpoint"], ans["best_segments"], n_layers=4)
    for figure in (drawn(n_layers=2), measured):
        assert min(peaks(figure)) > 0


def test_it_shows_the_students_own_function_and_not_a_right_one() -> None:
    def plain(fn, *args):
        return fn(*args)

    regular, mine, _ = peaks(drawn(4, checkpoint=plain))
    assert mine == pytest.approx(regular, rel=0.05)
    # With a right one it is less, as above.


def test_a_checkpoint_that_recomputes_everything_before_it_is_ended_in_a_line() -> None:
    wrong = answers_in("05-checkpoint", example("wrong", "05-checkpoint/arguments_not_detached").source)["checkpoint"]
    with pytest.raises(NeverEnds, match="12 layers were called 49 times in one pass") as raised:
        figures.segment_tradeoff(answers()["run_in_segments"], wrong, lambda n_layers, cost: 12, n_layers=12)
    assert len(raised.traceback) < 5 and raised.value.__suppress_context__


def test_the_label_counts_the_checkpoints_that_were_made() -> None:
    def four(layers, x, n_segments, checkpoint):
        return answers()["run_in_segments"](layers, x, 4, checkpoint)

    for figure, wanted in ((timelines(), "6 checkpointed"), (drawn(8, run_in_segments=four), "4 checkpointed")):
        assert any(wanted in text.get_text() for text in figure.axes[0].texts)


def test_measured_peaks_confirm_the_formula_and_its_minimum() -> None:
    formula, measured = (line.get_ydata() for line in tradeoff().axes[0].lines[:2])
    assert all(0 <= peak - wanted <= 0.25 * wanted for wanted, peak in zip(formula, measured, strict=True))
    assert list(measured).index(min(measured)) == list(formula).index(min(formula))


def test_the_price_is_one_forward_pass_whatever_the_number() -> None:
    (extra, *_) = (line.get_ydata() for line in tradeoff().axes[1].lines)
    assert extra == pytest.approx([100 / 3] * len(extra), abs=0.1)
