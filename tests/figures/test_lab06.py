"""The figures of lab 06: drawn from what is handed in, labelled, and a blank answer leaves a note."""

from __future__ import annotations

import importlib.util
import warnings

import pytest
import torch
from matplotlib.figure import Figure

from labkit import figures
from labkit.figures import weight_steps
from labkit.figures.weight_steps import RATES, WEIGHTS
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


def test_without_losses_a_note_is_drawn_and_no_warning_given() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (axes,) = figures.training_losses({}).axes
    assert "nothing to draw yet" in axes.texts[0].get_text() and axes.get_legend() is None


def test_losses_and_bytes_are_labelled() -> None:
    (axes,) = figures.training_losses({"one": [2.0] * 30, "two": [1.0] * 30}).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    (axes,) = figures.bytes_per_parameter({"AdamW": (4, 4, 8), "Adafactor": (4, 4, 0.005)}).axes
    assert [text.get_text() for text in axes.texts] == ["16", "8.01"]


def without_sliders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_singular_values_are_drawn_at_the_start_after_the_steps_and_of_the_answer(monkeypatch) -> None:
    without_sliders(monkeypatch)
    (axes,) = figures.newton_schulz_player(lambda g: torch.linalg.qr(g.T)[0].T).axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert len(lines) == 6
    assert lines["4 times as wide, yours"] == pytest.approx([1.0] * 22, abs=1e-4)
    wide = lines["4 times as wide, after 5 steps"]
    assert min(wide) > 0.68 and max(wide) < 1.14
    assert min(lines["square, after 5 steps"]) < 0.68


def test_the_slider_goes_through_the_steps_of_newton_schulz() -> None:
    pytest.importorskip("ipywidgets")
    sliders, _ = figures.newton_schulz_player(torch.clone).children
    (steps,) = sliders.children
    assert [value for _, value in steps.options] == [0, 1, 2, 3, 4, 5] and steps.value == 5
    steps.value = 0


def test_no_step_of_newton_schulz_changes_nothing() -> None:
    after = {"one": (torch.eye(4), torch.eye(4))}
    (axes,) = weight_steps._singular_values(after, 0).axes
    start, now, _ = (line.get_ydata() for line in axes.lines)
    assert list(start) == pytest.approx(list(now))


def test_a_step_has_sliders_for_weight_and_rate_or_is_one_figure(monkeypatch) -> None:
    ipywidgets = pytest.importorskip("ipywidgets")
    shown = figures.step_player()
    assert isinstance(shown, ipywidgets.VBox)
    weight, rate = shown.children[0].children
    assert (weight.value, rate.value) == (0.02, 1e-5)
    weight.value, rate.value = 1.0, 5e-3
    without_sliders(monkeypatch)
    assert isinstance(figures.step_player(), Figure)


@pytest.mark.slow
@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_arrow_ends_where_bfloat16_puts_the_weight(weight: float) -> None:
    for lr in RATES:
        moved = (torch.tensor(weight).bfloat16().float() - lr).bfloat16() != torch.tensor(weight).bfloat16()
        texts = [text.get_text() for text in figures.step_beside_gap(weight, lr).axes[0].texts]
        assert any(("arrives at another number" if moved else "is rounded back") in text for text in texts)
