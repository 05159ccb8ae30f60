"""Lab 20: a `Trainer` without a feature and with it, at two sizes: samples, seconds on a stated machine, peak bytes.

Products and bytes are counted while the run goes on, and a machine's published rates make seconds of them. Nothing is
timed. What this cannot see (the allocator's cache, waiting for data, what a compiler fuses) has no row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from labkit.capstone import MACHINES
from labkit.capstone.cost import Costs
from labkit.capstone.machine import Machine
from labkit.exercises.lab20.flags import ACCUMULATION, BATCH, CHECKPOINTING, MIXED, OPTIMIZER
from labkit.exercises.lab20.tiny_trainer import Shape, samples_of, train
from labkit.meters.memory import track_memory

N_STEPS = 2
"""In the first one the optimizer makes its states."""
SIZES = {
    "large model, small batch": (Shape(width=192, n_blocks=3, seq_len=4), 4),
    "small model, large batch": (Shape(width=32, n_blocks=3, seq_len=64), 16),
}
"""A shape of the model and its texts, and samples in a step."""
MEASURED = (BATCH, ACCUMULATION, CHECKPOINTING, MIXED, OPTIMIZER)
IN_THE_TABLE = {
    feature: {"speed": speed, "memory": memory}
    for feature, speed, memory in (
        (BATCH, "✅", "✅"),
        (ACCUMULATION, "❌", "✅"),
        (CHECKPOINTING, "❌", "✅"),
        (MIXED, "✅", "❌✅"),
        (OPTIMIZER, "✅", "✅"),
    )
}
"""What the documentation of transformers says of what is measured here."""
Arguments = Callable[[str, int, int, int], Mapping[str, Any]]
Pair = tuple[dict[str, float], dict[str, float]]


def measured_rows(arguments: Arguments, machine: str = "basement") -> dict[str, list[Pair]]:
    """By feature, for each of SIZES, a run without it and the run that `arguments` asks for."""
    plain = {name: _run(shape, n, _plain(n), MACHINES[machine]) for name, (shape, n) in SIZES.items()}
    rows = {}
    for feature in MEASURED:
        pairs = []
        for name, (shape, n) in SIZES.items():
            samples = 2 * n if feature == BATCH else n
            chosen = arguments(feature, samples, max(n // 4, 1) if feature == ACCUMULATION else samples, 1)
            pairs.append((plain[name], _run(shape, samples, chosen, MACHINES[machine])))
        rows[feature] = pairs
    return rows


def gains_of(sizes: Sequence[Pair]) -> list[tuple[float, float]]:
    """By size: times as many samples a second, and the peak before in peaks after."""
    return [
        (
            after["samples"] / before["samples"] * before["seconds"] / after["seconds"],
            before["peak_bytes"] / after["peak_bytes"],
        )
        for before, after in sizes
    ]


def _plain(samples: int) -> dict[str, Any]:
    return {"per_device_train_batch_size": samples}


def _run(shape: Shape, samples: int, chosen: Mapping[str, Any], machine: Machine) -> dict[str, float]:
    costs, peaks = Costs(machine, may_read=True), []
    gen = torch.Generator().manual_seed(0)
    tokens = torch.randint(shape.vocab, (N_STEPS * samples, shape.seq_len + 1), generator=gen)
    with TemporaryDirectory() as tmp:
        train(shape, samples_of(tokens), chosen, N_STEPS, Path(tmp), partial(_counted, costs, peaks))
    return {"samples": samples, "seconds": costs.seconds / N_STEPS, "peak_bytes": peaks[0]}


@contextmanager
def _counted(costs: Costs, peaks: list[int], model: nn.Module) -> Iterator[None]:
    with track_memory(model, sites=False) as profile, costs:
        yield
    peaks.append(profile.peak_bytes)
