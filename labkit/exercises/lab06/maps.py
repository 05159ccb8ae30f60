"""Lab 06: numbers of one byte each, and the maps of 256 values that their codes stand for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Quantized:
    """One byte per number: codes, uint8 of shape (n,), and scales, float32 of shape (n_blocks,).

    A tensor in `optimizer.state` is cast to its parameter's dtype by `load_state_dict`, which would make float32 of the
    codes; in an object like this one it is left alone.
    """

    codes: Tensor
    scales: Tensor


def linear_map(signed: bool) -> Tensor:
    """256 values in order at even distances, float32: from -1 to 1 with an exact 0, or from 0 to 1."""
    return torch.cat([torch.arange(-128, 0) / 128, torch.arange(128) / 127]) if signed else torch.arange(256) / 255


def dynamic_map(signed: bool) -> Tensor:
    """256 values in order, float32, from -1 to 1 or from 0 to 1: seven decades, each with twice the values of the last.

    By the recipe of Dettmers and others, 8-bit Optimizers via Block-wise Quantization (2022), appendix A: the values of
    a decade are the middles of equal parts of 0.1 to 1.
    """
    decades = []
    for decade in range(7):
        parts = torch.linspace(0.1, 1, (1 if signed else 2) * 2**decade + 1, dtype=torch.float64)
        decades.append((parts[1:] + parts[:-1]) / 2 * 10.0 ** (decade - 6))
    positive = torch.cat(decades)
    values = torch.cat([-positive.flip(0), torch.zeros(1), positive] if signed else [torch.zeros(1), positive])
    return torch.cat([values, torch.ones(1)]).float()
