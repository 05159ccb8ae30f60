"""The figures of lab 11 show the calls, graphs and times that they are given."""

from __future__ import annotations

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from labkit import figures
from labkit.figures.compile_calls import COLORS
from labkit.meters.compile import Break, CompileProfile, Graph

CALLS = {"default": ("compiling", "compiled", "eager"), "marked": ("compiling", "compiled")}


def test_the_strip_has_a_box_of_its_colour_for_each_call() -> None:
    axes = figures.call_strip(CALLS).axes[0]
    boxes = [
        (round(box.get_x() + 0.45), round(box.get_y() + 0.36), to_hex(box.get_facecolor())) for box in axes.patches
    ]
    expected = [
        (n, row, COLORS[state]) for row, states in enumerate(CALLS.values()) for n, state in enumerate(states, 1)
    ]
    assert boxes == expected
    assert [label.get_text() for label in axes.get_yticklabels()] == ["default", "marked"]
    assert [text.get_text() for text in axes.texts] == ["c", "e", "c"]


def test_letters_are_named_where_they_are_drawn() -> None:
    storm = ("compiling",) * 8 + ("eager",) * 64
    figure = figures.call_strip({"72 calls": storm})
    assert [text.get_text() for text in figure.axes[0].texts] == ["c"] * 8 + ["e"] * 64
    assert _legend(figure) == ["compiles, then runs (c)", "runs compiled", "runs eagerly (e)"]
    figure = figures.call_strip({"144 calls": 2 * storm})
    assert not figure.axes[0].texts
    assert _legend(figure) == ["compiles, then runs", "runs compiled", "runs eagerly"]


def _legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_versions_are_counted_call_by_call() -> None:
    axes = figures.versions_by_size({"default": ("compiling", "compiling", "compiled")}, (2, 3, 5)).axes[0]
    (line,) = axes.lines
    assert list(line.get_ydata()) == [1, 2, 2]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2 rows", "3 rows", "5 rows"]


def test_each_graph_is_a_box_as_wide_as_it_has_operations() -> None:
    broken = CompileProfile(
        graphs=(Graph(("mul", "add"), 1, 0, 1), Graph(("relu",), 1, 0, 1)),
        breaks=(Break("a branch on the values of a tensor", "line 3: if y > 0:", 0),) * 2,
    )
    whole = CompileProfile(graphs=(Graph(("mul", "add", "relu"), 1, 0, 1),))
    figure = figures.graphs_and_breaks({"before": broken, "yours": whole})
    axes = figure.axes[0]
    assert [box.get_width() for box in axes.patches] == [2, 1, 3]
    assert [text.get_text() for text in axes.texts] == ["2", "1", "3"]
    assert len(axes.lines) == 1, "one cut"
    assert axes.get_xlabel().endswith("why they ended:")
    assert figure.get_supxlabel() == "before, line 3: if y > 0: (a branch on the values of a tensor)"
    assert figures.graphs_and_breaks({"yours": whole}).axes[0].get_xlabel().endswith("(red)"), "nothing is listed"


def test_the_curve_is_what_was_won_and_its_line_the_call_at_which_it_has_paid() -> None:
    axes = figures.break_even_curves({"yours": [25_000, 30_000, 35_000]}, 15_000, 2).axes[0]
    curve, zero, mark = axes.lines
    assert list(curve.get_ydata()) == [-10, 0, 10] and list(zero.get_ydata()) == [0, 0]
    assert list(mark.get_xdata()) == [2, 2] and axes.texts[0].get_text() == " call 2"
    assert len(figures.break_even_curves({"yours": [25_000]}, 15_000, None).axes[0].lines) == 2
