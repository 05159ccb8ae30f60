"""Lab 15: hidden cases of an optimizer that averages."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab15.optimizer_wrapper import Wrapped


def wrapped_cases(rng: random.Random) -> tuple[Wrapped, ...]:
    """With clipping and without, a block that some ranks leave out, and one rank."""
    return (
        Wrapped(n_ranks=rng.randint(2, 4), n_blocks=rng.randint(2, 4), max_norm=rng.uniform(0.1, 0.25)),
        Wrapped(n_ranks=rng.randint(2, 4), n_blocks=rng.randint(2, 3), clips=False, n_steps=rng.randint(2, 3)),
        Wrapped(
            n_ranks=rng.randint(2, 3), n_blocks=3, odd_ranks_skip=rng.randint(0, 2), max_norm=rng.uniform(0.1, 0.25)
        ),
        Wrapped(n_ranks=1, n_blocks=2),
    )


OPTIMIZER_WRAPPER = Hidden("15-optimizer-wrapper", wrapped_cases)
