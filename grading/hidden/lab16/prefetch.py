"""Lab 16: hidden cases of the order of a sharded model's step."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab16.prefetch import Blocks


def prefetch_cases(rng: random.Random) -> tuple[Blocks, ...]:
    """A network that is a little slower than the GPU, a fast one, a slow one, and few layers."""

    def blocks(n_layers: int, ratio: float, times: int) -> Blocks:
        forward_ms = round(rng.uniform(2.0, 9.0), 1)
        gather_ms = round(ratio * forward_ms, 2)
        return Blocks(n_layers, gather_ms, forward_ms, 2 * forward_ms, times * gather_ms)

    return (
        blocks(rng.randint(3, 5), rng.uniform(1.25, 1.35), 1),
        blocks(6, rng.uniform(0.65, 0.8), 2),
        blocks(rng.randint(4, 6), rng.uniform(0.3, 0.5), rng.randint(1, 2)),
        blocks(rng.randint(3, 5), rng.uniform(1.6, 2.5), rng.randint(1, 2)),
        blocks(2, rng.uniform(0.5, 1.5), 1),
        blocks(1, rng.uniform(0.5, 1.5), 1),
    )


PREFETCH = Hidden("16-prefetch", prefetch_cases)
