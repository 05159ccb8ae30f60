"""Lab 17: hidden cases of finished gradients."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab17.mend import Finished


def mend_cases(rng: random.Random) -> tuple[Finished, ...]:
    """Key heads of several ranks and of one; tied weights in one case of each kind; no tensor group to speak of."""
    return (
        Finished(4, 2, 2, tied=rng.random() < 0.5),
        Finished(*rng.choice(((3, 2, 3), (2, 3, 2))), tied=True),
        Finished(4, rng.choice((1, 2)), 1),
        Finished(1, 3, 1, tied=rng.random() < 0.5),
    )


MEND = Hidden("17-mend", mend_cases)
