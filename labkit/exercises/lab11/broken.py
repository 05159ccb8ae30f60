"""Lab 11: a model that a compiler has to cut into pieces, in five ways."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BrokenModel(nn.Module):
    """Adds noise to scaled rows, sends them through layers whose results may not grow, and scales them again."""

    def __init__(self, width: int, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(n_layers))
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x: Tensor, generator: torch.Generator) -> Tensor:
        x = x / x.abs().max().item()
        x = x + 0.1 * torch.randn(x.shape, generator=generator)
        for layer in self.layers:
            y = layer(x)
            if y.norm() > x.norm():
                y = y * (x.norm() / y.norm())
            x = x + torch.relu(y)
        print("mean", x.mean().item())
        return x / x[x > 0].mean()
