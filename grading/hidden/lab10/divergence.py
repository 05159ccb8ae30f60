"""Lab 10: hidden cases of an expensive branch."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab10.divergence import Mixture
from labkit.simt.lanes import WARP


def mixtures(rng: random.Random) -> tuple[Mixture, ...]:
    """Few negative elements in every warp; a last block that is not full; one in which all are negative."""
    return (
        Mixture(256 * rng.randint(2, 4) + rng.randint(1, 200), 256, rng.randint(2, 4)),
        Mixture(128 * rng.randint(3, 6) + rng.randint(40, 100), 128, 2),
        Mixture(192 * rng.randint(2, 4), 192, rng.randint(1, 3)),
        Mixture(rng.randint(200, 256), 256, WARP),
    )


DIVERGENCE = Hidden("10-divergence", mixtures)
