"""Lab 17's cut logits: what the ranks know of a token is, put together, what PyTorch finds in the whole row."""

from __future__ import annotations

import math

import torch
from matplotlib.colors import to_hex
from torch.nn import functional as F

from labkit import figures
from labkit.figures.canvas import OTHER
from labkit.figures.cut_logits import COLUMNS, TARGETS, example_logits, together


def test_three_numbers_are_the_loss() -> None:
    logits = example_logits()
    highest, total, picked = together(logits)
    loss = F.cross_entropy(logits[:1], torch.tensor(TARGETS[:1])).item()
    assert math.isclose(highest + math.log(total) - picked, loss, rel_tol=1e-5)


def test_targets_are_framed_and_the_last_line_is_together() -> None:
    figure = figures.cut_logits()
    left, right = figure.axes
    framed = [patch.get_xy() for patch in left.patches if to_hex(patch.get_edgecolor()) == OTHER]
    assert framed == [(target, -token - 1) for token, target in enumerate(TARGETS)]
    assert len({target // COLUMNS for target in TARGETS}) == 3
    cells = right.tables[0].get_celld()
    last = [cells[4, column].get_text().get_text() for column in range(4)]
    assert last == ["together", *(f"{number:.2f}" for number in together(example_logits()))]
    assert "token 0" in figure.alt
