"""Lab 04: hidden caps for the search of a micro-batch."""

from __future__ import annotations

import random
from collections.abc import Callable

from grading.hidden import Hidden, drawn
from labkit.exercises.lab04.find_batch import Capped
from labkit.oracles.lab04.find_batch import Trial, doubled, halved, largest, peak_bytes


def cap(size: int, global_batch: int, **shape: int) -> Capped:
    """A cap half-way between what this size takes and what one text more takes."""
    case = Capped(0, global_batch, **shape)
    return Capped((peak_bytes(case, size) + peak_bytes(case, size + 1)) // 2, global_batch, **shape)


def telling(draw: Callable[[], Capped]) -> Capped:
    """One of these in which doubling and halving come by another size than the right one, and than trials that keep
    the graphs of two micro-batches find.
    """

    def tells(case: Capped) -> bool:
        return not {largest(case), largest(case, Trial(joined=True))} & (halved(case) | doubled(case))

    return drawn(draw, tells)


def caps(rng: random.Random) -> tuple[Capped, ...]:
    """Two sizes in the middle of the range, one text, no room for one, room for all."""
    wide = rng.randrange(48, 80, 8)
    return (
        telling(lambda: cap(rng.randint(9, 15), rng.randint(50, 90), n_hidden=wide)),
        telling(lambda: cap(rng.randint(17, 30), rng.randint(120, 250), longest=rng.randint(13, 18))),
        cap(1, rng.randint(5, 20), longest=rng.randint(80, 110)),
        Capped(1_450_000, rng.randint(10, 40), longest=rng.randint(90, 120)),
        Capped(16_000_000, rng.randint(15, 25)),
    )


FIND_BATCH = Hidden("04-find-batch", caps)
