"""The figures of lab 14's cost model: drawn from the functions that are handed in, and nothing runs off the page."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from labkit import figures
from labkit.figures.cost_model import ALGORITHMS, COLORS
from tests.exercises.harness import answers_in, solution_of
from tests.figures.on_page import assert_every_text_is_on_the_page
from tests.ranks import algorithms


@cache
def model() -> Callable[..., float]:
    return answers_in("14-cost-model", solution_of("14-cost-model"))["all_reduce_time"]


@cache
def hierarchical() -> Callable:
    return answers_in("14-hierarchical", solution_of("14-hierarchical"))["hierarchical_all_reduce"]


def tree_is_free(name: str, n: int, n_bytes: int, alpha_s: float, beta_s: float) -> float:
    return 1e-9 if name == "tree" else model()(name, n, n_bytes, alpha_s, beta_s)


def test_lines_are_the_formulas_and_dots_the_programs() -> None:
    axes = figures.time_against_size(model(), algorithms.ALL).axes[0]
    lines = {line.get_label(): line for line in axes.lines if line.get_linestyle() == "-"}
    assert list(lines) == list(ALGORITHMS)
    dots = [line for line in axes.lines if line.get_linestyle() == "None" and len(line.get_xdata())]
    assert len(dots) == len(ALGORITHMS)
    for one in dots:
        name = next(name for name, color in COLORS.items() if color == one.get_color())
        at = np.interp(one.get_xdata(), lines[name].get_xdata(), lines[name].get_ydata())
        assert one.get_ydata() == pytest.approx(at, rel=1e-6)


def test_the_map_shows_the_students_own_winner() -> None:
    def share(figure, name: str) -> float:
        colors = figure.axes[0].collections[0].get_facecolor()[:, :3]
        return float(np.mean(np.all(np.isclose(colors, to_rgb(COLORS[name]), atol=0.01), axis=1)))

    right, wrong = figures.cost_map(model(), 6), figures.cost_map(tree_is_free, 6)
    for figure in (right, wrong):
        figure.draw_without_rendering()
    assert share(right, "tree") == 0 and share(right, "ring") > 0.2 and share(right, "butterfly") > 0.2
    assert share(wrong, "tree") == 1
    assert {text.get_text() for text in wrong.axes[0].texts} == {"tree"}


def test_bars_are_what_the_programs_sent() -> None:
    rows = figures.between_nodes(algorithms.ring, hierarchical(), n_nodes=2, per_node=2)
    assert [row.tensors for row in rows] == [3.0, 1.5, 1.0]
    flat = figures.between_nodes(algorithms.ring, lambda comm, x, nodes: algorithms.ring(comm, x), 2, 2)
    assert flat[2].tensors == flat[0].tensors
    widths = [bar.get_width() for bar in figures.between_nodes_bars(rows).axes[0].patches]
    assert widths == [row.tensors for row in rows]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.time_against_size(model(), {"ring": algorithms.ring}),
        lambda: figures.cost_map(model(), 10),
        lambda: figures.between_nodes_bars(figures.between_nodes(algorithms.ring, hierarchical())),
    ],
)
def test_every_text_is_on_the_page(draw) -> None:
    figure = draw()
    assert_every_text_is_on_the_page(figure)
    for axes in figure.axes:
        for text in axes.texts:
            assert axes.bbox.padded(2).containsx(text.get_window_extent().x1), text.get_text()
