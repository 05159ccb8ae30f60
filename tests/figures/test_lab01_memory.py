"""The figures of lab 01's bytes: drawn from the functions handed in, labelled, and nothing runs off the page."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence

import pytest
from matplotlib.figure import Figure

from labkit import figures
from labkit.figures import Plan
from labkit.figures.memory_bars import memory_parts
from labkit.spec import GiB
from tests.figures.on_page import assert_every_text_is_on_the_page

PLAN = Plan(batch_size=4, seq_len=4096, tensor_parallel=2, zero_stage=2, recompute=True, recipe="fp16_master")


def count(config: object) -> int:
    return 10**9


def states(shapes: Sequence[tuple[int, ...]], recipe: str, optimizer: str) -> dict[str, int]:
    ((n,),) = shapes
    return {"weights": 2 * n, "master": 4 * n, "gradients": 2 * n, "optimizer": 8 * n}


def kept(config, batch_size: int, seq_len: int, attention: str, dtype_bytes: int = 2) -> int:
    scores = 1000 * seq_len if attention == "eager" else 0
    return batch_size * seq_len * (config.num_hidden_layers * (10**5 + scores) + 10**6)


def extrapolate(measured: dict[int, int], n_layers: int) -> float:
    return 5.0e9 * n_layers


FIGURES: dict[str, Callable[[], Figure]] = {
    "bars": lambda: figures.memory_bars(PLAN, count, states, kept),
    "one bar": lambda: figures.memory_bars(Plan(), count, states, kept),
    "lengths": lambda: figures.kept_per_token(kept, PLAN.config()),
    "one layer": lambda: figures.llama_layer(PLAN.config()),
    "depths": lambda: figures.depth_line(extrapolate, {1: 6 * 10**9, 2: 7 * 10**9}, {16: 20 * 10**9}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_it_has_something_on_it_and_every_text_is_on_the_page(name: str) -> None:
    figure = FIGURES[name]()
    (axes,) = figure.axes
    assert axes.lines or axes.patches
    assert_every_text_is_on_the_page(figure)


def test_the_bars_are_the_students_own_bytes_and_the_loss() -> None:
    (axes,) = FIGURES["one bar"]().axes
    widths = [patch.get_width() * GiB for patch in axes.patches]
    one = kept(Plan().config(), 1, 1024, "sdpa")
    assert widths == pytest.approx([2e9, 4e9, 2e9, 8e9, one, 8 * 1024 * 128256])


def test_every_measure_takes_what_it_should() -> None:
    full = memory_parts(Plan(recipe="fp16_master"), count, states, kept)
    stages = [memory_parts(Plan(zero_stage=stage, data_parallel=4), count, states, kept) for stage in range(4)]
    quarters = [{name for name, n in parts.items() if n == full[name] / 4} for parts in stages]
    split = [set(), {"optimizer", "master"}, {"optimizer", "master", "gradients"}]
    assert quarters == [*split, split[2] | {"weights"}]
    halves = memory_parts(Plan(tensor_parallel=2), count, states, kept)
    assert all(halves[name] == full[name] / 2 for name in full)
    recomputed = memory_parts(Plan(recompute=True), count, states, kept)
    assert recomputed["activations"] == 1024 * (32 * 4096 * 2 + 10**5 + 10**6)
    assert recomputed["loss"] == full["loss"] == 1024 * 8 * 128256


def test_the_lines_are_the_students_own() -> None:
    (axes,) = FIGURES["depths"]().axes
    assert list(axes.lines[0].get_ydata()) == [5.0 * depth for depth in range(17)]
    (axes,) = FIGURES["lengths"]().axes
    eager, fused = (list(line.get_ydata()) for line in axes.lines[:2])
    assert len(set(fused)) == 1 and eager[-1] == pytest.approx((32 * (10**5 + 1000 * 2**14) + 10**6) / 1e6)
    assert axes.lines[2].get_xdata()[0] == pytest.approx((32 * 10**5 + 10**6) / (32 * 1000))


def test_without_ipywidgets_there_is_one_figure(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert isinstance(figures.memory_sliders(count, states, kept, PLAN), Figure)


def test_the_sliders_start_at_the_plan_and_move_the_bars() -> None:
    ipywidgets = pytest.importorskip("ipywidgets")
    shown = figures.memory_sliders(count, states, kept, PLAN)
    assert isinstance(shown, ipywidgets.VBox)
    sliders = {slider.description: slider for slider in shown.children[0].children}
    assert sliders["s"].value == 4096 and sliders["t"].value == 2 and sliders["precision"].value == "fp16_master"
    for slider in sliders.values():
        slider.value = slider.options[-1]


def test_a_layers_tensors_have_the_widths_of_the_configuration() -> None:
    config = PLAN.config()
    (axes,) = figures.llama_layer(config).axes
    widths = [patch.get_width() for patch in axes.patches]
    assert widths.count(config.intermediate_size) == 4
    assert widths.count(config.num_key_value_heads * config.head_dim) == 2
    assert len(widths) == 13
