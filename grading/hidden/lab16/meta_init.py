"""Lab 16: hidden cases of a model that never exists whole; the last is one whose whole shows from outside."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab16.meta_init import Drawn


def meta_init_cases(rng: random.Random) -> tuple[Drawn, ...]:
    """Ranks that divide nothing, more ranks than elements, layers that are large beside the rest."""
    return (
        Drawn(3, rng.randint(2, 4), rng.choice((5, 7, 11)), rng.randint(4, 9), rng.randint(10, 10**6)),
        Drawn(rng.randint(4, 5), 1, 3, rng.randint(1, 2), rng.randint(10, 10**6)),
        Drawn(4, rng.randint(5, 6), rng.randint(500, 560), rng.randint(30, 60), rng.randint(10, 10**6)),
        Drawn(1, 2, rng.randint(3, 6), 4, rng.randint(10, 10**6)),
    )


def large_cases(rng: random.Random) -> tuple[Drawn, ...]:
    """Ten layers of 8 MiB on four ranks: 20 MiB of shards and one layer, where the whole is 80 MiB."""
    return (Drawn(4, 10, 1447, 8, rng.randint(10, 10**6)),)


META_INIT = Hidden("16-meta-init", meta_init_cases, memory_cases=large_cases)
