"""Lab 04: hidden caps for the search of a micro-batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from grading.hidden import Hidden, drawn
from labkit.exercises.lab04.find_batch import Capped
from labkit.oracles.lab04.find_batch import Trial, doubled, halved, largest, peak_bytes


def capped(size: int, case: Capped) -> Capped:
    """The same with a cap half-way between what this size takes and what one text more takes."""
    return replace(case, cap_bytes=(peak_bytes(case, size) + peak_bytes(case, size + 1)) // 2)


def telling(draw: Callable[[], tuple[int, Capped]]) -> Capped:
    """One of these in which doubling and halving come by another size than the right one, and than trials that keep
    the graphs of two micro-batches find.
    """

    def tells(found: tuple[int, Capped]) -> bool:
        size, case = found
        come_by = halved(case) | doubled(case)
        # What needs no trial comes first: a trial takes some 15 ms.
        return size not in come_by and largest(capped(size, case), Trial(joined=True), size) not in come_by

    return capped(*drawn(draw, tells))


def caps(rng: random.Random) -> tuple[Capped, ...]:
    """Two sizes in the middle of the range, one text, no room for one, room for all."""
    wide = rng.randrange(48, 80, 8)
    return (
        telling(lambda: (rng.randint(9, 15), Capped(0, rng.randint(50, 90), n_hidden=wide))),
        telling(lambda: (rng.randint(17, 30), Capped(0, rng.randint(120, 250), longest=rng.randint(13, 18)))),
        capped(1, Capped(0, rng.randint(5, 20), longest=rng.randint(80, 110))),
        Capped(1_450_000, rng.randint(10, 40), longest=rng.randint(90, 120)),
        Capped(16_000_000, rng.randint(15, 25)),
    )


FIND_BATCH = Hidden("04-find-batch", caps)
