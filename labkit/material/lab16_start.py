"""Lab 16: what initializing a model takes on one rank, by way. Nothing is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labkit.exercises.lab16.meta_init import Drawn, Layers, part_size
from labkit.meters import measure_memory

Init = Callable[[Callable[[], nn.Module], int, int, int], dict[str, Tensor]]


@dataclass(frozen=True)
class Start:
    """Bytes on one rank: the most at a time, and what stays. `Start(peak=4096, kept=1024)`."""

    peak: int
    kept: int


def cut_whole(build: Callable[[], nn.Module], seed: int, rank: int, world_size: int) -> dict[str, Tensor]:
    """As everybody would write it: the whole model, and then this rank's parts of it."""
    torch.manual_seed(seed)
    shards = {}
    for name, parameter in build().named_parameters():
        size = part_size(parameter.numel(), world_size)
        shards[name] = parameter.detach().flatten()[rank * size : (rank + 1) * size].clone()
    return shards


def init_peaks(ways: dict[str, Init], n_ranks: int, n_layers: int = 12, width: int = 256) -> dict[str, Start]:
    """Rank 1's memory while it initializes a model of square layers, and the bytes of the whole model as "model"."""
    case = Drawn(n_layers=n_layers, width=width)
    found = {}
    for name, way in ways.items():
        way(lambda: Layers(Drawn()), 1, 1, n_ranks)  # what the meta device imports at first is nobody's
        measured: dict[str, float] = {}
        with torch.random.fork_rng(devices=[]), measure_memory(measured):
            shards = way(lambda: Layers(case), 1, 1, n_ranks)
        found[name] = Start(int(measured["peak_bytes"]), sum(one.nbytes for one in shards.values()))
    whole = sum(p.numel() * p.element_size() for p in Layers(case).parameters())
    return found | {"whole model": Start(whole, whole)}
