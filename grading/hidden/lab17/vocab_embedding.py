"""Lab 17: hidden cases of an embedding that is cut by rows."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab17.vocab_embedding import Table


def table_cases(rng: random.Random) -> tuple[Table, ...]:
    """Few rows and many, a rank without a token, tokens of two dimensions, one rank."""
    return (
        Table(rng.randint(3, 5), rng.randint(6, 12), rng.randint(2, 7), (rng.randint(5, 9),)),
        Table(4, rng.randint(30, 60), 5, (2, rng.randint(3, 5))),
        Table(3, rng.randint(8, 14), 4, (rng.randint(4, 6),), idle=True),
        Table(1, rng.randint(6, 9), 3, (5,)),
    )


VOCAB_EMBEDDING = Hidden("17-vocab-embedding", table_cases)
