"""Lab 07: hidden images to keep, and to train on from the device."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.cache import Pictures


def picture_cases(rng: random.Random) -> tuple[Pictures, ...]:
    """Room for a fifth of the images, for half of them, for nearly all, for all, and for none."""

    def pictures(n: int, max_share: float) -> Pictures:
        batch_size = rng.choice((4, 8, 16))
        n_train = batch_size * rng.randint(4, 6) - rng.randint(0, 3)
        return Pictures(n, max_share, rng.randint(3, 4), n_train, batch_size, float(rng.randint(6, 20)))

    return (
        pictures(rng.randint(40, 50), rng.uniform(0.17, 0.24)),
        pictures(rng.randint(30, 40), rng.uniform(0.45, 0.6)),
        pictures(rng.randint(30, 40), rng.uniform(0.8, 0.9)),
        pictures(rng.randint(10, 20), 1.0),
        pictures(rng.randint(10, 20), 0.005),
    )


CACHE = Hidden("07-cache", picture_cases)
