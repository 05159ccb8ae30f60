"""Lab 15: hidden cases of gradients that come late."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab15.stale import Late


def late_cases(rng: random.Random) -> tuple[Late, ...]:
    """No delay, a short one, a long one, and one that is longer than the run."""

    def late(delay: int, n_steps: int) -> Late:
        return Late(delay, n_steps, rng.randint(2, 5), rng.uniform(0.1, 0.3), rng.choice((0.3, 0.7, 3.0, 7.0)))

    return (
        late(0, rng.randint(4, 9)),
        late(rng.randint(1, 2), rng.randint(5, 9)),
        late(rng.randint(3, 5), rng.randint(9, 12)),
        late(rng.randint(9, 16), rng.randint(4, 8)),
    )


STALE = Hidden("15-stale", late_cases)
