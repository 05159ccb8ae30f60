"""Lab 18: hidden cases of interleaved 1F1B."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab18.interleaved import Looped


def looped(rng: random.Random) -> tuple[Looped, ...]:
    """Few rounds of micro-batches and many, passes of any length, one rank and one chunk, messages that take time."""

    def any_length() -> tuple[float, float]:
        return rng.randint(1, 6) / 2, rng.randint(1, 12) / 2

    p, q = rng.randint(3, 5), rng.randint(2, 4)
    return (
        Looped(p, rng.randint(2, 3), p * rng.randint(2, 4), *any_length()),
        Looped(q, rng.randint(3, 5), q * rng.randint(2, 4), *any_length()),
        Looped(p, 2, p, *any_length()),
        Looped(p, 2, p * rng.randint(2, 3), 1.0, rng.randint(2, 4) / 2, transfer=rng.randint(1, 4) / 4),
        Looped(q, 1, q * rng.randint(2, 3)),
        Looped(1, rng.randint(2, 3), rng.randint(1, 3)),
    )


INTERLEAVED = Hidden("18-interleaved", looped)
