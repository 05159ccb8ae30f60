"""Lab 02: hidden lists to merge. What tells the mistakes apart comes first, as in the public cases."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab02.merge_smallest import MANY, Merging


def merge_cases(rng: random.Random) -> tuple[Merging, ...]:
    """Many random lists, because in any one of them another order of adding may end in the same bits.

    The long case takes a list that is moved in memory at every turn beyond the limit of CPU time. It is uniform, as
    the public one: in a list in falling order, half as much of magnitudes would be moved.
    """
    return (
        Merging(10, "orders", scale=2.0 ** rng.randint(-20, 20)),
        Merging(10, "heaps", scale=2.0 ** rng.randint(-20, 20)),
        Merging(10, "levels", scale=2.0 ** rng.randint(-20, 20)),
        Merging(1),
        *(Merging(rng.randint(100, 200), rng.choice(("uniform", "magnitudes"))) for _ in range(14)),
        Merging(MANY, "uniform"),
    )


MERGE_SMALLEST = Hidden("02-merge-smallest", merge_cases)
