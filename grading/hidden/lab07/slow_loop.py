"""Lab 07: hidden costs of loading, copying and computing."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.slow_loop import Images


def costs(rng: random.Random) -> tuple[Images, ...]:
    """Each of the four slow-downs weighs most in one of them."""

    def images(**costs: float) -> Images:
        batch_size = rng.choice((4, 8, 16))
        return Images(**{"n": batch_size * rng.randint(6, 9), "batch_size": batch_size, **costs})

    def ms(low: int, high: int) -> float:
        return float(rng.randint(low, high))

    cores = rng.randint(3, 6)
    return (
        images(load_ms=ms(4, 9), n_cores=cores),
        images(load_ms=1.0, n_epochs=rng.randint(6, 9), start_ms=ms(90, 200), n_cores=cores),
        images(load_ms=1.0, python_ms=ms(9, 14), start_ms=ms(25, 40)),
        images(load_ms=1.0, copy_ms=ms(16, 32), python_ms=ms(2, 6), start_ms=ms(25, 40)),
    )


SLOW_LOOP = Hidden("07-slow-loop", costs)
