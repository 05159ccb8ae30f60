"""Lab 14: hidden cases of reduce-scatter and all-gather."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab14.reduce_scatter import CALLS, Parts


def parts(rng: random.Random) -> tuple[Parts, ...]:
    """Each call on four ranks, on a number that is no power of two, with a rest, and with fewer elements than ranks."""
    settings = (
        # A multiple of 3: the all-reduce gets a tensor of two dimensions.
        (4, 12 * rng.randint(2, 4), "float32"),
        (rng.choice((3, 6, 7)), rng.randint(30, 60), "int32"),
        (8, 8 * rng.randint(5, 9) + rng.randint(1, 7), "bfloat16"),
        (5, rng.randint(1, 4), "float64"),
    )
    return tuple(Parts(call, *setting) for setting in settings for call in CALLS)


REDUCE_SCATTER = Hidden("14-reduce-scatter", parts)
