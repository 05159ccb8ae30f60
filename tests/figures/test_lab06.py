"""The figures of lab 06: drawn from what is handed in, labelled, and a blank answer leaves a note."""

from __future__ import annotations

import pytest
import torch

from labkit import figures
from labkit.material import lab06
from labkit.spec import STUB_MESSAGE
from tests.exercises.harness import answers_in, solution_of

MAPS = {"linear": lab06.linear_map(False), "dynamic": lab06.dynamic_map(False)}


def quantize(*arguments: object) -> None:
    raise NotImplementedError(STUB_MESSAGE)


def test_a_step_below_half_a_gap_is_rounded_back_and_a_larger_one_is_not() -> None:
    def texts(**step: float) -> list[str]:
        return [text.get_text() for text in figures.step_beside_gap(**step).axes[0].texts]

    assert "a step of 1e-05 is rounded back" in texts()
    assert "a step of 0.0001 arrives at another number" in texts(lr=1e-4)


def test_maps_are_drawn_with_all_their_positive_values() -> None:
    (axes,) = figures.code_maps(MAPS).axes
    assert [len(strokes.get_segments()) for strokes in axes.collections] == [255, 255]


def test_steps_explode_by_the_maps_and_not_without_one() -> None:
    answers = answers_in("06-adam8bit", solution_of("06-adam8bit"))
    (axes,) = figures.steps_by_gradient_size(answers["quantize"], answers["dequantize"], MAPS).axes
    largest = {line.get_label(): max(line.get_ydata()) for line in axes.lines}
    assert largest["linear"] > 1e6 > largest["dynamic"] > 1e4
    assert largest["exact"] == pytest.approx(0.8926, abs=1e-3)


def test_a_blank_quantize_leaves_a_note_in_place_of_the_figure() -> None:
    (axes,) = figures.steps_by_gradient_size(quantize, quantize, MAPS).axes
    assert "quantize is still blank" in axes.texts[0].get_text().replace("\n", " ")


def test_losses_and_bytes_are_labelled() -> None:
    (axes,) = figures.training_losses({"one": [2.0] * 30, "two": [1.0] * 30}).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    (axes,) = figures.bytes_per_parameter({"AdamW": (4, 4, 8), "Adafactor": (4, 4, 0.005)}).axes
    assert [text.get_text() for text in axes.texts] == ["16", "8.01"]


def test_singular_values_are_drawn_before_and_after() -> None:
    (axes,) = figures.singular_values(lambda g: torch.linalg.qr(g.T)[0].T).axes
    after = [line for line in axes.lines if line.get_label().endswith("after")]
    assert len(axes.lines) == 4
    assert all(line.get_ydata() == pytest.approx([1.0] * 64, abs=1e-4) for line in after)
