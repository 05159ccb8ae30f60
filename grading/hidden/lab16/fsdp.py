"""Lab 16: hidden cases of a model of sharded units."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab16.fsdp import BF16, Units


def fsdp_cases(rng: random.Random) -> tuple[Units, ...]:
    """Each kind of unit and each pair of dtypes, several micro-batches, units of 0.7 MB, and one rank."""

    def shuffled(*kinds: str) -> tuple[str, ...]:
        return tuple(rng.sample(kinds, len(kinds)))

    wide = rng.randint(590, 620)
    return (
        Units(3, ("plain",) * 3, rng.randint(4, 7)),
        Units(rng.choice((2, 5)), shuffled("plain", "tied", "plain"), rng.randint(4, 7)),
        Units(4, ("frozen", *shuffled("plain", "tied", "frozen")), rng.randint(4, 7), n_micro=rng.randint(2, 3)),
        Units(3, ("plain", *shuffled("plain", "tied")), 7, **BF16),
        Units(4, ("plain", "plain", "tied"), 6, **BF16, reduce_dtype="bfloat16"),
        Units(3, ("plain", *shuffled("plain", "tied", "plain", "frozen"), "plain"), wide, **BF16, n_steps=1),
        Units(1, ("plain", "tied"), 4),
    )


def large_cases(rng: random.Random) -> tuple[Units, ...]:
    """Six units of 4 MiB on 3 ranks: kept whole, they are 24 MiB too many.

    In float32: for products in bfloat16 oneDNN keeps buffers that no meter sees and that grow with the width. After a
    pass through one layer they were 3 to 5 MiB at a width of 600, 6 to 10 MiB at 1,010, and 0.1 MiB with oneDNN off.
    Where something as wide had been multiplied before, units in bfloat16 still held 3 MiB (six) to 5 MiB (ten) more
    than was counted, and a process may hold only 4 MiB more than its budget.
    """
    return (Units(3, ("plain", "tied", *["plain"] * 4), 1000 + rng.randint(1, 30), n_steps=1),)


FSDP = Hidden("16-fsdp", fsdp_cases, memory_cases=large_cases)
