"""The figures of lab 08's adapters: they show the numbers that are handed in, and every text is on the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

from labkit import figures
from tests.exercises.harness import answers_in, solution_of
from tests.figures.on_page import assert_every_text_is_on_the_page

KEPT = {
    "everything": {"weights": 16e9, "gradients": 16e9, "optimizer": 32e9},
    "LoRA": {"weights": 16e9, "gradients": 84e6, "optimizer": 168e6},
}
TRAINED = {"everything": 8_030_261_248, "LoRA": 41_943_040}
LOSSES = {"LoRA": [(34_816, 3.5), (557_056, 0.5)], "everything": [(1_400_000, 0.45)]}


def spectrum(rank: int) -> Figure:
    gen = torch.Generator().manual_seed(0)
    layer = answers_in("08-lora-linear", solution_of("08-lora-linear"))["LoRALinear"](nn.Linear(24, 24), rank, 8.0)
    layer.lora_B.data.normal_(generator=gen)
    before = layer.base.weight.detach().clone()
    layer.merge()
    return figures.update_spectrum({"LoRA": layer.base.weight.detach() - before})


def usage(codebook: torch.Tensor | None = None) -> Figure:
    own = answers_in("08-nf4", solution_of("08-nf4"))["nf4_codebook"]() if codebook is None else codebook
    return figures.code_usage(own, torch.randn(64, 64, generator=torch.Generator().manual_seed(0)))


DRAWN: dict[str, Callable[[], Figure]] = {
    "bytes_by_method": lambda: figures.bytes_by_method(KEPT, TRAINED),
    "loss_at_equal_bytes": lambda: figures.loss_at_equal_bytes(LOSSES, floor=0.358, before=8.9),
    "update_spectrum": lambda: spectrum(4),
    "code_usage": usage,
    "low_rank_update": figures.low_rank_update,
    "prompt_or_prefix": figures.prompt_or_prefix,
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_text_is_on_the_page(name: str) -> None:
    figure = DRAWN[name]()
    assert_every_text_is_on_the_page(figure)


def test_bytes_are_shown_in_both_units_with_what_trains() -> None:
    texts = " ".join(text.get_text() for axes in DRAWN["bytes_by_method"]().axes for text in axes.texts)
    assert "64.00 GB = 59.60 GiB" in texts
    assert "252.0 MB = 240.3 MiB" in texts
    assert "41,943,040 train" in texts


@pytest.mark.parametrize("rank", [2, 5])
def test_the_spectrum_of_a_students_layer_ends_at_its_rank(rank: int) -> None:
    (line,) = spectrum(rank).axes[0].lines
    assert len(line.get_xdata()) == rank


def test_the_losses_are_those_handed_in() -> None:
    drawn = {line.get_label(): list(line.get_ydata()) for line in DRAWN["loss_at_equal_bytes"]().axes[0].lines}
    assert drawn["LoRA"] == [3.5, 0.5]
    assert drawn["everything"] == [0.45]
    assert drawn["before training"] == [8.9, 8.9]


def test_the_strokes_are_the_students_codes() -> None:
    codes = torch.linspace(-1, 1, 16)
    assert [line.get_xdata()[0] for line in usage(codes).axes[0].lines] == codes.tolist()
