"""Lab 18: pipelines for schedules of one stage on each rank."""

from __future__ import annotations

import random

from labkit.exercises.lab18.orders import Pipe


def pipes(rng: random.Random) -> tuple[Pipe, ...]:
    """Many micro-batches and few, stages alike and not, messages that take time and not."""

    def times(n_stages: int) -> tuple[float, ...]:
        return tuple(rng.randint(2, 12) / 2 for _ in range(n_stages))

    deep, wide = rng.randint(4, 7), rng.randint(2, 4)
    return (
        Pipe(deep, rng.randint(deep + 1, 3 * deep)),
        Pipe(deep, rng.randint(2, deep - 1), times(deep), times(deep)),
        Pipe(wide, rng.randint(2 * wide, 20), times(wide), times(wide), rng.randint(1, 6) / 4),
        Pipe(rng.randint(3, 5), rng.randint(6, 12), transfer=rng.randint(1, 4) / 2),
        Pipe(1, rng.randint(1, 4)),
        Pipe(rng.randint(2, 6), 1),
    )
