"""Lab 17's figures: they show who has which part, what each tensor is, and which gradients are off."""

from __future__ import annotations

import pytest
import torch

from labkit import figures
from labkit.figures.canvas import OTHER, TRUTH, YOURS

pytestmark = pytest.mark.lab("17")


def test_a_quarter_a_sum_and_another_direction_are_told_apart() -> None:
    reference = {
        "norm": torch.tensor([3.0, 4.0]),
        "bias": torch.ones(2),
        "w": torch.tensor([1.0, 0.0]),
        "v": torch.ones(3),
    }
    by_rank = [
        {
            "norm": reference["norm"] / 4,
            "bias": reference["bias"] * (1 + rank),
            "w": torch.tensor([0.0, 1.0]),
            "v": torch.ones(3),
        }
        for rank in range(2)
    ]
    figure = figures.gradient_ratios(reference, by_rank)
    axes = figure.axes[0]
    bars = [line for line in axes.lines if line.get_linewidth() == 7]
    assert [bar.get_xdata()[1] for bar in bars] == [0.25, 1.5, 1, 1]
    assert [bar.get_color() for bar in bars] == [YOURS, YOURS, OTHER, TRUTH]
    assert [text.get_text() for text in axes.texts] == ["0.25", "1 to 2", "1, turned", "1"]
    assert figure.alt == "Gradients that differ from one process: norm 0.25; bias 1 to 2; w 1, turned"


def test_a_missing_gradient_stands_at_the_left_edge_and_a_part_is_compared_with_its_part() -> None:
    whole = torch.arange(1.0, 5.0)
    parts = [{"w": part} for part in whole.split(2)]
    figure = figures.gradient_ratios(parts, [{"w": whole[:2].clone()}, {"w": None}])
    assert [text.get_text() for text in figure.axes[0].texts] == ["0 to 1"]
    assert min(figure.axes[0].lines[1].get_xdata()) == 1 / 16
