"""Lab 07: hidden times to load and to work."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.prefetch import Loading


def loading_cases(rng: random.Random) -> tuple[Loading, ...]:
    """Queues of one and of several, workers that divide the step and that do not."""

    def loading(depth: int, divides: bool) -> Loading:
        step_ms, batch_size, workers = rng.randint(40, 120), rng.choice((8, 16, 64)), rng.randint(2, 9)
        n = rng.randint(15, 30)
        # batch_size * sample_ms is workers * step_ms, or a little more.
        sample_ms = workers * step_ms
        step_ms *= batch_size
        return Loading(
            n,
            depth,
            rng.randint(0, n - 1),
            batch_size,
            sample_ms if divides else sample_ms + 1,
            step_ms,
            rng.randint(1, 5),
            rng.randint(10_000, 600_000),
        )

    return (loading(1, True), loading(2, False), loading(rng.randint(3, 5), False), loading(1, False))


PREFETCH = Hidden("07-prefetch", loading_cases)
