"""Lab 08, the frozen 4-bit layer: hidden cases. A square weight, a tall input and a chain tell the mistakes apart."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab08.frozen_nf4 import Frozen


def frozen_cases(rng: random.Random) -> tuple[Frozen, ...]:
    # From 512 on a second weight takes more than is allowed for unpacking one.
    wide = 64 * rng.randint(8, 10)
    return (
        Frozen(128, rng.randint(40, 90), (rng.randint(1, 3), 4)),
        Frozen(64, 64, (rng.randint(3, 9),)),
        Frozen(128, rng.randint(40, 90), (2, 3), dtype="bfloat16", strided=True),
        Frozen(64, 64, (4, rng.randint(240, 280))),
        Frozen(wide, wide, (rng.randint(3, 5),), n_layers=4),
    )


def large_frozen(rng: random.Random) -> tuple[Frozen, ...]:
    """A weight of 17 MiB in float32, five times in a row: 68 MiB more where it is kept."""
    return (Frozen(2112, 2112, (rng.randint(2, 4),), n_layers=5),)


FROZEN_NF4 = Hidden("08-frozen-nf4", frozen_cases, memory_cases=large_frozen)
