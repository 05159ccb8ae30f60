"""Lab 15's figures: the spans and times that they are given are the ones that are drawn."""

from __future__ import annotations

import math

import pytest

from labkit import figures
from labkit.figures.ddp import scaling_figure
from labkit.material.lab15 import Timeline
from tests.figures.on_page import assert_every_text_is_on_the_page

BACKWARD = ((0, 0.25), (0.25, 0.5))


def stale_sgd(gradient, weights, lr, delay, n_steps):
    kept = [weights]
    for _ in range(n_steps):
        kept.append(kept[-1] - lr * gradient(kept[max(len(kept) - 1 - delay, 0)]))
    return kept[1:]


def largest_stable_lr(curvature, delay):
    return 2 * math.sin(math.pi / (2 * (2 * delay + 1))) / curvature


EARLY = Timeline(BACKWARD, reduces=((0.25, 0.375, 64), (0.5, 0.75, 32)), backward_s=0.5, step_s=0.75)
LATE = Timeline(BACKWARD, reduces=((0.5, 1, 96),), backward_s=0.5, step_s=1)


def test_the_timeline_shows_every_span_of_every_step() -> None:
    figure = figures.ddp_timeline({"two buckets": EARLY, "one bucket": LATE})
    for axes, step in zip(figure.axes, (EARLY, LATE), strict=True):
        bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
        assert bars == [(1000 * start, 1000 * end) for start, end, *_ in (*step.backward, *step.reduces)]
        assert list(axes.lines[0].get_xdata()) == [500, 500]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["two buckets: 2 calls, 750 ms", "one bucket: 1 call, 1000 ms"]


def test_a_timeline_of_nothing() -> None:
    with pytest.raises(ValueError, match="give at least one step"):
        figures.ddp_timeline({})


def test_scaling_shows_the_times_and_what_they_make_of_many_ranks() -> None:
    figure = scaling_figure({1: 0.5, 4: 1.0, 2: 0.25}, 0.2, {"yours": {1: 20.0, 2: 25.0, 4: 40.0}})
    left, right = figure.axes
    assert left.lines[0].get_xydata().tolist() == [[1, 500], [2, 250], [4, 1000]]
    assert right.lines[1].get_xydata().tolist() == [[1, 1], [2, 1.6], [4, 2]]


def test_normalization_error_shows_the_errors() -> None:
    figure = figures.normalization_error({"yours": {4: 1e-7, 2: 2e-7}})
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[2, 2e-7], [4, 1e-7]]


@pytest.mark.slow
def test_late_gradients_are_run_and_marked_by_whether_they_converge() -> None:
    """At 0.7 and 0.9 of the limit they do, at 1.1 and 1.4 they do not; with a limit twice as high none does."""
    left, right = figures.late_gradients(stale_sgd, largest_stable_lr).axes
    assert [len(line.get_xdata()) for line in left.lines] == [41, 41, 41]
    assert abs(left.lines[1].get_ydata()[-1]) < 1e-3 and abs(left.lines[2].get_ydata()[-1]) > 1
    line, converging, diverging = right.lines
    for points, below in ((converging, True), (diverging, False)):
        limits = dict(zip(*line.get_data()))
        assert len(points.get_xdata()) == 18
        assert all((lr < limits[delay]) == below for delay, lr in points.get_xydata().tolist())
    too_high = figures.late_gradients(stale_sgd, lambda *given: 2 * largest_stable_lr(*given)).axes[1]
    assert len(too_high.lines[1].get_xdata()) == 0


@pytest.mark.slow
def test_every_text_is_on_the_page() -> None:
    for figure in (
        figures.late_gradients(stale_sgd, largest_stable_lr),
        figures.ddp_timeline({"a bucket for each parameter": EARLY, "one bucket": LATE}),
        scaling_figure({0.01: 0.3, 1: 0.25, 12: 0.4}, 0.2, {"for each block": {1: 0.2, 16: 0.25}}),
        figures.normalization_error({"each rank its own rows": {2: 0.8, 64: 0.1}, "yours": {2: 1e-7, 64: 1e-7}}),
    ):
        assert_every_text_is_on_the_page(figure)
