"""Lab 07: hidden texts to batch."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.length_buckets import Texts


def text_cases(rng: random.Random) -> tuple[Texts, ...]:
    """With and without a rest, many batches and few."""

    def texts(n: int, batch_size: int, n_done: int) -> Texts:
        return Texts(n, batch_size, rng.randint(40, 100), n_done, rng.randint(0, 10_000))

    batch_size = rng.choice((8, 12, 16))
    return (
        texts(rng.randint(120, 200) * batch_size, batch_size, rng.randint(1, 100)),
        texts(rng.randint(120, 200) * batch_size + rng.randint(1, batch_size - 1), batch_size, rng.randint(1, 100)),
        texts(rng.randint(20, 40), 8, rng.randint(0, 2)),
    )


LENGTH_BUCKETS = Hidden("07-length-buckets", text_cases)
