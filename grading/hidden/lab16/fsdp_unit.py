"""Lab 16: hidden cases of one sharded layer."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab16.fsdp_unit import Layers


def unit_cases(rng: random.Random) -> tuple[Layers, ...]:
    """One layer and several, frozen ones, fewer elements than ranks, and weights of a MB or more."""

    def widths(n: int) -> tuple[int, ...]:
        return tuple(rng.choice((3, 5, 7, 8)) for _ in range(n))

    return (
        Layers(3, (rng.choice((5, 7)), rng.choice((4, 8)))),
        Layers(rng.choice((2, 5)), widths(4)),
        Layers(4, widths(3), frozen=(rng.randint(0, 1),)),
        Layers(5, (3, 1)),
        Layers(3, (401, 700 + rng.randint(0, 50), 400 + rng.randint(0, 50), 7)),
        Layers(1, widths(2)),
    )


def large_cases(rng: random.Random) -> tuple[Layers, ...]:
    """Three layers of 4 to 6 MiB on 3 ranks."""
    return (Layers(3, (1024, 1200 + rng.randint(0, 99), 1024, 1100)),)


FSDP_UNIT = Hidden("16-fsdp-unit", unit_cases, memory_cases=large_cases)
