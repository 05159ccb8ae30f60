"""Lab 15: hidden cases of the sampler."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab15.sampler import Split


def sampler_cases(rng: random.Random) -> tuple[Split, ...]:
    """Sizes that the ranks divide and that they do not, with and without a rest; fewer samples than ranks; one rank."""

    def seed() -> int:
        return rng.randint(0, 10_000)

    ranks = rng.randint(3, 6)
    return (
        Split(ranks * rng.randint(10, 16), ranks, seed=seed()),
        Split(ranks * rng.randint(10, 16) + rng.randint(1, ranks - 1), ranks, seed=seed()),
        # Two samples or more are left out: enough to see that they are not always the same.
        Split(ranks * rng.randint(10, 16) + rng.randint(2, ranks - 1), ranks, drop_last=True, seed=seed()),
        Split(rng.randint(2, 3), rng.randint(7, 9), seed=seed()),
        Split(rng.randint(30, 60), 1, seed=seed()),
        Split(rng.randint(1, 4), rng.randint(5, 8), drop_last=True, seed=seed()),
    )


SAMPLER = Hidden("15-sampler", sampler_cases)
