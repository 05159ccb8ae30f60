"""What the tests of captures and replays share: a small graph, fresh batches, and what it computes of them."""

from __future__ import annotations

import torch

from labkit.simdevice import CUDAGraph, SimDevice

N_KERNELS = 3


def batches(n: int = 4) -> list[torch.Tensor]:
    gen = torch.Generator().manual_seed(0)
    return [torch.randn(2, 3, generator=gen) for _ in range(n)]


def captured(sim: SimDevice, static: torch.Tensor) -> tuple[CUDAGraph, torch.Tensor]:
    """A graph of N_KERNELS kernels, and its output."""
    graph = sim.CUDAGraph()
    with sim.graph(graph):
        out = (static * 2).tanh().sum(-1)
    return graph, out


def right(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).tanh().sum(-1)
