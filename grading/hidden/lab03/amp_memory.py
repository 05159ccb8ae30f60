"""Lab 03: hidden stacks of layers."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab03.amp_memory import Stack


def stacks(rng: random.Random) -> tuple[Stack, ...]:
    """A single row, then many; hidden layers are wide enough to break even, in the last stack only just.

    The last width is the first in one stack alone: there both amounts are equal for a whole number of rows.
    """

    def widths(n_hidden: int) -> tuple[int, ...]:
        return (
            rng.randint(50, 200),
            *(rng.randint(220, 900) for _ in range(n_hidden)),
            rng.randint(210, 300),
        )

    ends, narrow, last = rng.randint(50, 300), rng.randint(180, 220), rng.randint(380, 420)
    return (
        Stack(widths(2), 1),
        Stack(widths(3), rng.randint(300, 900)),
        Stack((ends, rng.randint(220, 900), ends), rng.randint(2, 2000)),
        Stack((2 * narrow + last - rng.randint(15, 25), narrow, last), rng.randint(2, 2000)),
    )


AMP_MEMORY = Hidden("03-amp-memory", stacks)
