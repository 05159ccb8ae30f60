"""Lab 11: hidden calls of a served model."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab11.recompiles import WIDTH, Serving


def servings(rng: random.Random) -> tuple[Serving, ...]:
    """Each public kind with other numbers, and a batch without rows."""
    # As many rows as columns, and `dynamic=True` takes the two for one size.
    several = tuple(rng.sample([size for size in range(2, 30) if size != WIDTH], 6))
    temperatures = tuple(round(rng.uniform(0.4, 2.0), 3) for _ in range(3))
    return (
        Serving(sizes=(rng.randint(2, 9),) * rng.randint(11, 15), n_layers=rng.randint(1, 2)),
        Serving(sizes=several, n_layers=rng.randint(1, 3)),
        Serving(sizes=(1, *several[:3], 0, 1), temperatures=temperatures[:1]),
        Serving(sizes=(rng.randint(2, 9),) * 5, temperatures=temperatures),
        Serving(sizes=(*several, 1, *several), temperatures=temperatures, n_layers=rng.randint(5, 9)),
        Serving(runaway=True),
    )


RECOMPILES = Hidden("11-recompiles", servings)
