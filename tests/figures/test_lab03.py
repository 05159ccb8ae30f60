"""The figures of lab 03: drawn from the functions that are handed in, labelled, and nothing runs off the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
import torch
from matplotlib.figure import Figure

from labkit import figures
from labkit.exercises.lab03.autocast_dtypes import BLOCKS
from labkit.exercises.lab03.underflow import Magnitudes, histogram
from labkit.figures.mixed_precision import step_times
from labkit.material.lab03 import measured_on_cpu
from labkit.spec import STUB_MESSAGE
from tests.exercises.harness import answers_in, solution_of
from tests.figures.on_page import assert_every_text_is_on_the_page

WIDTHS = (64, 128, 128, 64)
pytestmark = pytest.mark.slow


def answers(*exercise_ids: str) -> dict:
    found: dict = {}
    for exercise_id in exercise_ids:
        found |= answers_in(exercise_id, solution_of(exercise_id))
    return found


def gradients(scale: float | None = None, **instead: Callable) -> Figure:
    ans = {**answers("03-underflow"), **instead}
    if scale is not None:
        ans["largest_safe_scale"] = lambda exponents, counts: scale
    tree = histogram(Magnitudes(-24, 4.0, -40, -8), torch.Generator().manual_seed(0))
    return figures.gradient_histogram(
        tree["exponents"], tree["counts"], ans["fraction_to_zero"], ans["largest_safe_scale"]
    )


def plain_gradients() -> Figure:
    tree = histogram(Magnitudes(-24, 4.0, -40, -8), torch.Generator().manual_seed(0))
    return figures.gradient_histogram(tree["exponents"], tree["counts"])


def trace(**instead: Callable) -> Figure:
    return figures.loss_scale_trace({**answers("03-loss-scaler"), **instead}["LossScaler"], n_steps=60)


def dtypes(predicted: Mapping[str, torch.dtype] | None = None) -> Figure:
    ops = BLOCKS["llama"]
    given = {"x": torch.bfloat16, **dict.fromkeys(("w_norm", "w_gate", "w_up", "w_down"), torch.float32)}
    rules = answers("03-autocast-dtypes")["autocast_dtypes"]
    on_gpu = rules if predicted is None else lambda ops, given, low: predicted
    return figures.dtype_map(ops, given, torch.bfloat16, {"GPU": on_gpu, "CPU": measured_on_cpu})


def memory(**instead: Callable) -> Figure:
    ans = {**answers("03-amp-memory"), **instead}
    points = {False: {1: 2**20, 40: 2**21}, True: {1: 2**20}}
    return figures.amp_memory(ans["bytes_after_forward"], ans["break_even_rows"], WIDTHS, points)


def times() -> Figure:
    return step_times({64: {"fp32": 8.0, "pure bf16": 6.0}, 256: {"fp32": 80.0, "pure bf16": 40.0}})


def texts_of(figure: Figure) -> list[str]:
    axes = figure.axes
    return [text.get_text() for one in axes for text in (*one.texts, one.title, one._left_title)]


def trace_of_pytorch() -> Figure:
    return figures.loss_scale_trace(torch.amp.GradScaler, n_steps=60)


@pytest.mark.parametrize(
    "draw",
    [
        *(gradients, plain_gradients, trace, trace_of_pytorch, dtypes, memory, times),
        *(figures.amp_step, figures.amp_layers),
    ],
)
def test_it_has_something_on_it_and_every_text_is_on_the_page(draw: Callable[[], Figure]) -> None:
    figure = draw()
    assert figure.axes and any(axes.lines or axes.patches or axes.collections for axes in figure.axes)
    assert_every_text_is_on_the_page(figure)


def test_the_histogram_marks_as_lost_what_the_function_calls_lost() -> None:
    def nothing_is_lost(exponents: torch.Tensor, counts: torch.Tensor, scale: float) -> float:
        return 0.0

    assert any("31 % lost" in text for text in texts_of(gradients()))
    figure = gradients(fraction_to_zero=nothing_is_lost)
    assert all("0 % lost" in axes._left_title.get_text() for axes in figure.axes)


def test_a_fraction_that_is_nearly_nothing_is_not_called_nothing() -> None:
    figure = gradients(fraction_to_zero=lambda exponents, counts, scale: 1e-7)
    assert all("< 0.001 % lost" in axes._left_title.get_text() for axes in figure.axes)


def test_the_histogram_shows_the_start_as_an_outline() -> None:
    tree = histogram(Magnitudes(-24, 4.0, -40, -8), torch.Generator().manual_seed(0))
    counts = (tree["exponents"], tree["counts"])
    figure = figures.gradient_histogram(*counts, lambda *of: 0.0, lambda *of: 1.0, at_start=counts)
    assert "at the start" in figure.axes[0].get_legend_handles_labels()[1]


def test_the_histogram_shows_what_becomes_infinite() -> None:
    legend = gradients(scale=2.0**30).axes[1].get_legend_handles_labels()[1]
    assert "infinite" in legend
    assert "infinite" not in gradients().axes[1].get_legend_handles_labels()[1]


def test_before_the_exercise_the_histogram_says_nothing_of_what_is_lost() -> None:
    (axes,) = plain_gradients().axes
    assert not any("lost" in text for text in texts_of(plain_gradients()))
    assert axes.get_legend_handles_labels()[1] == ["late in training"]


def test_pytorchs_scaler_is_drawn_alone() -> None:
    lines = {line.get_label(): line.get_ydata() for line in trace_of_pytorch().axes[0].lines}
    assert list(lines) == ["GradScaler"]
    assert (lines["GradScaler"] == trace().axes[0].lines[0].get_ydata()).all()


def test_a_step_and_its_layers_are_drawn_without_what_is_asked() -> None:
    drawn = {draw: " ".join(texts_of(draw())).lower() for draw in (figures.amp_step, figures.amp_layers)}
    assert "÷ s" in drawn[figures.amp_step] and "clip" not in drawn[figures.amp_step]
    assert "alive" not in drawn[figures.amp_layers] and drawn[figures.amp_layers].count("16 bits") == 6


def test_the_trace_is_the_scalers_own() -> None:
    class Constant:
        def __init__(self, init_scale: float, growth_interval: int) -> None:
            self.scale_now = init_scale

        def get_scale(self) -> float:
            return self.scale_now

        def scale(self, loss: torch.Tensor) -> torch.Tensor:
            return loss * self.scale_now

        def step(self, optimizer: torch.optim.Optimizer) -> None:
            """Nothing."""

        def update(self) -> None:
            """Nothing."""

    right, wrong = trace(), trace(LossScaler=Constant)
    lines = {line.get_label(): line.get_ydata() for line in right.axes[0].lines}
    assert (lines["yours"] == lines["GradScaler"]).all()
    assert "0 of 60 steps skipped" in texts_of(wrong)
    (limits, *_) = right.axes[0].collections
    assert right.axes[0].get_ylim()[0] < limits.get_offsets()[:, 1].min()
    assert set({line.get_label(): line.get_ydata() for line in wrong.axes[0].lines}["yours"]) == {2.0**24}


def test_a_blank_answer_leaves_a_note_in_place_of_a_figure() -> None:
    def blank(*of: object, **named: object) -> object:
        raise NotImplementedError(STUB_MESSAGE)

    drawn = (
        gradients(fraction_to_zero=blank),
        gradients(largest_safe_scale=blank),
        trace(LossScaler=blank),
        figures.dtype_map(BLOCKS["llama"], {}, torch.bfloat16, {"GPU": blank}),
        memory(bytes_after_forward=blank),
    )
    assert all("still blank" in " ".join(" ".join(texts_of(one)).split()) for one in drawn)


def test_the_map_shows_the_prediction_and_says_where_it_is_missing() -> None:
    assert texts_of(dtypes()).count("float32") > texts_of(dtypes({})).count("float32")
    assert texts_of(dtypes({})).count("?") == len(BLOCKS["llama"])


def test_the_lines_meet_where_the_students_function_says() -> None:
    def everywhere(widths: Sequence[int]) -> int:
        return 77

    assert "77 rows" in texts_of(memory(break_even_rows=everywhere))
