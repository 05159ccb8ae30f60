"""Lab 19: hidden cases of dealing out a text."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab19.zigzag import Text


def texts(rng: random.Random) -> tuple[Text, ...]:
    """Lengths that 2n divides and others, long ones and some shorter than 2n, odd numbers of ranks, one rank."""
    n_even, n_long, n_short = rng.randint(3, 6), rng.randint(5, 8), rng.randint(4, 6)
    return (
        Text(2 * n_even * rng.randint(2, 9), n_even, rng.randint(1, 3)),
        # The longest padding at the end of the text: one token more than 2n divides.
        Text(2 * n_long * rng.randint(32, 40) + 1, n_long),
        Text(2 * n_long * rng.randint(32, 40) + rng.randint(2, 2 * n_long - 1), n_long, 2),
        Text(rng.randint(n_short + 1, 2 * n_short - 1), n_short),
        # However it is dealt, some rank has no token.
        Text(rng.randint(2, n_short - 1), n_short),
        Text(rng.randint(20, 40), 2, 3),
        Text(rng.randint(5, 15), 1),
    )


ZIGZAG = Hidden("19-zigzag", texts)
