"""Lab 11: hidden cases of what a compiled function keeps."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.memory import Kept


def kept_cases(rng: random.Random) -> tuple[Kept, ...]:
    """Two for each of the functions, tall and wide."""
    return tuple(
        Kept(which, rng.randint(*rows), rng.randint(*width), n_kept=rng.randint(2, 7))
        for which in ("saves", "saves_nothing")
        for rows, width in (((20, 60), (8, 20)), ((8, 20), (20, 60)))
    )


MEMORY = Hidden("11-memory", kept_cases)
