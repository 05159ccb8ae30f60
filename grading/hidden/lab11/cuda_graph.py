"""Lab 11: hidden cases of a step that is captured once and replayed."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.cuda_graph import Replays


def replay_cases(rng: random.Random) -> tuple[Replays, ...]:
    """Steps of few kernels and of many, of equal ones and with a long one."""
    few = [rng.randint(10, 90) * 1e-7 for _ in range(rng.randint(3, 5))]
    return (
        _replays(rng, 1, (*few,)),
        _replays(rng, rng.randint(4, 7), (rng.randint(10, 90) * 1e-7,) * rng.randint(5, 9)),
        _replays(rng, 2, (*few, rng.randint(300, 900) * 1e-7)),
    )


def _replays(rng: random.Random, n_layers: int, kernels_s: tuple[float, ...]) -> Replays:
    return Replays(
        n_batches=rng.randint(3, 8),
        n_rows=rng.randint(2, 6),
        width=rng.randint(5, 12),
        n_layers=n_layers,
        asked=(kernels_s, rng.randint(10, 90) * 1e-7),
    )


CUDA_GRAPH = Hidden("11-cuda-graph", replay_cases)
