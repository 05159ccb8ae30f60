"""Lab 15's figures: the spans and times that they are given are the ones that are drawn."""

from __future__ import annotations

import pytest

from labkit import figures
from labkit.material.lab15 import Timeline

EARLY = Timeline(backward=((0, 10), (10, 20)), reduces=((10, 16, 64), (20, 23, 32)), backward_s=20, step_s=23)
LATE = Timeline(backward=((0, 10), (10, 20)), reduces=((20, 29, 96),), backward_s=20, step_s=29)


def test_the_timeline_shows_every_span_of_every_step() -> None:
    figure = figures.ddp_timeline({"two buckets": EARLY, "one bucket": LATE})
    for axes, step in zip(figure.axes, (EARLY, LATE), strict=True):
        bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
        assert bars == [*step.backward, *(span[:2] for span in step.reduces)]
        assert list(axes.lines[0].get_xdata()) == [20, 20]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["two buckets: 2 calls, 23 s", "one bucket: 1 call, 29 s"]


def test_a_timeline_of_nothing() -> None:
    with pytest.raises(ValueError, match="give at least one step"):
        figures.ddp_timeline({})


def test_scaling_shows_the_times_and_what_they_make_of_many_ranks() -> None:
    figure = figures.ddp_scaling({1: 30.0, 4: 40.0, 2: 25.0}, 20.0, {"yours": {1: 20.0, 2: 25.0, 4: 40.0}})
    left, right = figure.axes
    assert left.lines[0].get_xydata().tolist() == [[1, 30], [2, 25], [4, 40]]
    assert right.lines[1].get_xydata().tolist() == [[1, 1], [2, 1.6], [4, 2]]


def test_normalization_error_shows_the_errors() -> None:
    figure = figures.normalization_error({"yours": {4: 1e-7, 2: 2e-7}})
    assert figure.axes[0].lines[0].get_xydata().tolist() == [[2, 2e-7], [4, 1e-7]]


def test_every_text_is_on_the_page() -> None:
    for figure in (
        figures.ddp_timeline({"a bucket for each parameter": EARLY, "one bucket": LATE}),
        figures.ddp_scaling({0.01: 30.0, 1: 25.0, 12: 40.0}, 20.0, {"for each block": {1: 20.0, 16: 25.0}}),
        figures.normalization_error({"each rank its own rows": {2: 0.8, 64: 0.1}, "yours": {2: 1e-7, 64: 1e-7}}),
    ):
        figure.draw_without_rendering()
        page = figure.bbox.padded(2)
        for axes in figure.axes:
            for text in (*axes.texts, axes.title, axes.xaxis.label, *axes.get_yticklabels()):
                box = text.get_window_extent()
                assert page.containsx(box.x0) and page.containsx(box.x1), text.get_text()
