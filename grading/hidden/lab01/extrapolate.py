"""Lab 01: hidden depths."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.extrapolate import Deep


def depths(rng: random.Random) -> tuple[Deep, ...]:
    """Consecutive depths, depths apart, and the deeper one measured first."""
    return (
        Deep(32, 64, rng.randint(4, 6), 4, 2, rng.randint(300, 500), batch_size=2),
        Deep(48, 96, rng.randint(7, 8), 4, 4, 200, measured_layers=(2, 4), batch_size=1),
        Deep(
            32, 96, rng.randint(5, 6), 2, 1, rng.randint(600, 900), measured_layers=(4, 1), seq_len=rng.randint(24, 40)
        ),
    )


EXTRAPOLATE = Hidden("01-extrapolate", depths)
