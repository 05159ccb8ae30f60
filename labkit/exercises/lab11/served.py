"""Lab 11: the model of the exercise on recompilations, as it should not be written for a compiler."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WARM_UP = 10
"""Calls after which the layers of a ServedModel count in full."""


class ServedModel(nn.Module):
    """A model as people write them: its layers differ in a number, and it counts its own calls.

    In the first WARM_UP calls the layers count less. temperature: what the result is divided by.
    """

    def __init__(self, width: int, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(n_layers))
        self.n_calls = 0

    def forward(self, x: Tensor, temperature: float) -> Tensor:
        self.n_calls += 1
        share = min(1.0, self.n_calls / WARM_UP)
        for depth, layer in enumerate(self.layers, 1):
            x = x + share * torch.tanh(layer(x)) / depth
        return x / temperature
