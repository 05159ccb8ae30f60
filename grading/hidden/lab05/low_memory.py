"""Lab 05: hidden cases of backpropagation that keeps only the input."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab05.low_memory import Tower


def tower_cases(rng: random.Random) -> tuple[Tower, ...]:
    return (
        Tower(rng.randint(4, 6)),
        Tower(rng.randint(11, 14), rng.randint(500, 600)),
        Tower(2),
        Tower(rng.randint(9, 13), 300, 48),
    )


def large_tower(rng: random.Random) -> tuple[Tower, ...]:
    """Activations of 6 MiB, two of which a layer keeps: fifteen layers hold 180 MiB where 60 are allowed."""
    return (Tower(15, rng.randint(98_000, 98_304), 16),)


LOW_MEMORY = Hidden("05-low-memory", tower_cases, memory_cases=large_tower)
