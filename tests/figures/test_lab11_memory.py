"""The figures of lab 11's bytes and launches: drawn from what is handed in, labelled, and nothing runs off the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.figure import Figure

from labkit import figures
from labkit.meters.compile import Kernel
from tests.figures.on_page import assert_every_text_is_on_the_page

LOOP = Kernel("op0", ("mul", "add", "sigmoid", "where", "hypot", "clamp_max"), 8192, 4096, generated=True)
PRODUCT = Kernel("op1", ("mm",), 20480, 4096, generated=False)
EAGER = [Kernel(name, (name,), 8192, 4096, generated=False) for name in ("mul", "add", "sigmoid")]
KEPT = {0.0: 0, 0.3: 24576, 0.4: 32768, 1.0: 65536}

FIGURES: dict[str, Callable[[], Figure]] = {
    "three ways": lambda: figures.fused_bytes(
        {"eager": EAGER, "chain, compiled": [LOOP, PRODUCT], "fused, compiled": [LOOP]}, 12288, eager=["eager"]
    ),
    "budgets": lambda: figures.kept_at_budgets(98304, KEPT, 0.4, limit_bytes=49152, chosen=0.3),
    "budgets without a limit": lambda: figures.kept_at_budgets(98304, KEPT, 1.0),
    "launches": lambda: figures.launch_times({1.0: (80.0, 82.0), 5.0: (205.0, 84.0)}, pays_from_us=2.0),
    "one way": lambda: figures.fused_bytes({"compiled": [LOOP]}, 12288),
}


@pytest.mark.parametrize("name", FIGURES)
def test_it_has_something_on_it_and_every_text_is_on_the_page(name: str) -> None:
    figure = FIGURES[name]()
    assert all(axes.lines or axes.patches for axes in figure.axes)
    assert_every_text_is_on_the_page(figure)


def test_a_bar_is_as_long_as_what_its_kernel_moves_and_coloured_by_who_wrote_it() -> None:
    eager, compiled, fused = FIGURES["three ways"]().axes
    assert [bar.get_width() for bar in eager.patches] == [12.0, 12.0, 12.0]
    assert [bar.get_width() for bar in compiled.patches] == [12.0, 24.0]
    assert compiled.get_title(loc="left") == "chain, compiled\n2 kernels, 3.0 × the ideal"
    assert fused.get_title(loc="left") == "fused, compiled\n1 kernel, 1.0 × the ideal"
    loop, product = compiled.patches
    assert len({eager.patches[0].get_facecolor(), loop.get_facecolor(), product.get_facecolor()}) == 3
    assert eager.get_ylim() == fused.get_ylim() and eager.get_xlim() == fused.get_xlim()


def test_the_bars_are_what_is_kept_in_kib() -> None:
    bars, curve = FIGURES["budgets"]().axes
    assert [bar.get_height() for bar in bars.patches] == [96.0, 64.0, 32.0]
    assert [label.get_text() for label in bars.get_xticklabels()] == ["eager", "compiled", "budget 0.4"]
    assert curve.lines[0].get_ydata().tolist() == [0.0, 24.0, 32.0, 64.0]
    assert curve.get_title(loc="left") == "your choice for the limit: 0.3"


def test_the_slider_begins_at_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipywidgets")
    slider = figures.budget_slider(98304, KEPT, 49152, 0.3).children[0]
    assert (slider.value, list(slider.options)) == (0.3, [0.0, 0.3, 0.4, 1.0])
    assert figures.budget_slider(98304, KEPT, 0, None).children[0].value == 1.0
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(figures.budget_slider(98304, KEPT, 49152, 0.3), Figure)


def test_the_two_times_of_a_step_and_where_the_graph_pays() -> None:
    (axes,) = FIGURES["launches"]().axes
    eager, graphed, limit = axes.lines
    assert (list(eager.get_ydata()), list(graphed.get_ydata())) == ([80.0, 205.0], [82.0, 84.0])
    assert list(limit.get_xdata()) == [2.0, 2.0]
