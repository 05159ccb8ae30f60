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
NO_FIXED_ORDER = (5, 13, 16, 24, 35)
"""Seeds of stages for which ZB-H1 is too slow, whatever the most is by which a weight gradient is put off."""
NOT_WHAT_BEGINS_FIRST = (9, 11, 17, 36, 38)
"""Seeds of stages for which it is too slow to run always what can begin first, input gradients before all else."""


def uneven(seed: int, best: float) -> Split:
    """Two or three stages of any times."""
    rng = random.Random(seed)
    n_stages, n_microbatches = rng.randint(2, 3), rng.randint(3, 4)
    times = [tuple(rng.randint(2, 8) / 2 for _ in range(n_stages)) for _ in range(3)]
    return Split(*times, n_microbatches, memory=n_stages, best=best)


def zero_bubble_cases(rng: random.Random) -> tuple[Split, ...]:
    """Stages alike, deep and not, and three that are not alike: for two of them, a simple rule is not enough."""
    deep, wide = rng.randint(4, 6), rng.randint(2, 3)
    seeds = [rng.choice(NO_FIXED_ORDER), rng.choice(NOT_WHAT_BEGINS_FIRST)]
    seeds.append(rng.choice([seed for seed in range(len(BEST)) if seed not in seeds]))
    return (
        uniform(deep, rng.randint(deep, 4 * deep)),
        uniform(wide, rng.randint(wide, 4 * wide), time=rng.randint(1, 6) / 2),
        *(uneven(seed, BEST[seed]) for seed in seeds),
    )


ZERO_BUBBLE = Hidden("18-zero-bubble", zero_bubble_cases)
