"""Lab 18: hidden cases of split backward passes; the best steps of unequal stages are stored, by their seed.

`shortest` found them, and a test finds them again.
"""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab18.zero_bubble import Split, uniform

BEST = (
    42.5,
    24.5,
    28.0,
    28.0,
    31.0,
    49.5,
    30.0,
    31.0,
    27.0,
    35.5,
    36.5,
    43.0,
    40.5,
    45.5,
    26.0,
    21.5,
    37.5,
    42.5,
    23.5,
    26.0,
    47.0,
    39.5,
    24.5,
    29.5,
    30.0,
    34.5,
    26.5,
    31.5,
    25.5,
    39.0,
    32.0,
    32.5,
    24.5,
    32.5,
    27.0,
    30.5,
    28.0,
    31.5,
    35.5,
    27.0,
)
"""By seed."""


def uneven(seed: int, best: float) -> Split:
    """Two or three stages of any times."""
    rng = random.Random(seed)
    n_stages, n_microbatches = rng.randint(2, 3), rng.randint(3, 4)
    times = [tuple(rng.randint(2, 8) / 2 for _ in range(n_stages)) for _ in range(3)]
    return Split(*times, n_microbatches, memory=n_stages, best=best)


def zero_bubble_cases(rng: random.Random) -> tuple[Split, ...]:
    """Stages alike, deep and not, and three that are not alike."""
    deep, wide = rng.randint(4, 6), rng.randint(2, 3)
    return (
        uniform(deep, rng.randint(deep, 4 * deep)),
        uniform(wide, rng.randint(wide, 4 * wide), time=rng.randint(1, 6) / 2),
        *(uneven(seed, BEST[seed]) for seed in rng.sample(range(len(BEST)), 3)),
    )


ZERO_BUBBLE = Hidden("18-zero-bubble", zero_bubble_cases)
