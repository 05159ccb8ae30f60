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
        Units(3, ("plain", *shuffled("plain", "tied", "plain", "frozen"), "plain"), wide, **BF16),
        Units(1, ("plain", "tied"), 4),
    )


def large_cases(rng: random.Random) -> tuple[Units, ...]:
    """Four units of 4 MiB, in float32 on 3 ranks: kept whole, they are 16 MiB too many. Six gathered in bfloat16 on 2
    ranks, from masters in float32: kept whole, they are 12 MiB too many. Two steps of each: what is kept from the
    second one on shows as well.

    In bfloat16 a third of a unit would be a message of less than 1 MiB. The heap keeps what such messages free: on 3
    ranks 2 to 4 MiB more were held than was counted, and a process may hold only 4 MiB more than its budget. On 2
    ranks, whose messages are larger, it was 0.2 MiB less. What oneDNN keeps of products in bfloat16 is left out by the
    driver.
    """
    kinds = ("plain", "tied", *["plain"] * 4)
    in_32_bits = Units(3, kinds[:4], 1000 + rng.randint(1, 30))
    return (in_32_bits, Units(2, kinds, 1030 + rng.randint(1, 30), **BF16))


FSDP = Hidden("16-fsdp", fsdp_cases, memory_cases=large_cases)
