"""Lab 02, second half: hidden cases. What tells the mistakes apart comes first, as in the public ones."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab02.sums import Blocks, Draws, Merging, Numbers


def sums_cases(rng: random.Random) -> tuple[Numbers, ...]:
    return (
        Numbers("ones", rng.randint(1001, 1200)),
        Numbers("levels", 5),
        Numbers("huge", 4, "float64", value=float(rng.randint(2, 9))),
        Numbers("ones", rng.randint(800, 1200), "bfloat16"),
        Numbers("ones", 4, rng.choice(("float16", "bfloat16", "float32"))),
        Numbers("opposite", rng.randint(200, 400)),
        Numbers("cancelling", 2 * rng.randint(150, 300) + 1),
        Numbers("constant", 2 * rng.randint(300, 500) + 1, "float16", value=round(rng.uniform(0.005, 0.03), 4)),
        Numbers("constant", 2 * rng.randint(300, 500) + 1, "bfloat16", value=round(rng.uniform(0.005, 0.03), 4)),
        Numbers("constant", rng.choice((1, 2, 3)), "float32", value=0.1),
    )


SUMS = Hidden("02-sums", sums_cases)


def merge_cases(rng: random.Random) -> tuple[Merging, ...]:
    """Many random lists, because in any one of them another order of adding may end in the same bits.

    The long case takes a list that is moved in memory at every turn beyond the limit of CPU time. It is uniform, as
    the public one: in a list in falling order, half as much of magnitudes would be moved.
    """
    return (
        Merging(10, "orders", scale=2.0 ** rng.randint(-20, 20)),
        Merging(10, "heaps", scale=2.0 ** rng.randint(-20, 20)),
        Merging(1),
        *(Merging(rng.randint(100, 200), rng.choice(("uniform", "magnitudes"))) for _ in range(14)),
        Merging(300_000, "uniform"),
    )


MERGE_SMALLEST = Hidden("02-merge-smallest", merge_cases)


def blocked_cases(rng: random.Random) -> tuple[Blocks, ...]:
    """Tensors of some 2**18 elements: large beside a block, and small enough to be quick."""
    block = rng.choice((48, 64, 96))
    return (
        Blocks((16 * block, 256), 0, block),
        Blocks((2 ** rng.randint(6, 8), 16 * block), rng.choice((1, -1)), block),
        Blocks((16 * block + rng.randint(1, block - 1), 100), rng.choice((0, -2)), 2 * block),
        Blocks((rng.randint(4, 8), 12 * block + 5, 20), rng.choice((1, -2)), block),
        Blocks((rng.randint(4, 8), 1, rng.randint(260, 320)), -1, rng.randint(3, 5)),
        Blocks((rng.randint(2, 9), 7), 0, 64),
    )


def watched_blocks(rng: random.Random) -> tuple[Blocks, ...]:
    """64 MiB of float16: a cast of all of it takes 128 MiB more, a block a quarter of one."""
    return (Blocks((rng.randint(32_000, 32_768), 1024), 0, 64),)


BLOCKED_SUM = Hidden("02-blocked-sum", blocked_cases, watched=watched_blocks)


def draws_cases(rng: random.Random) -> tuple[Draws, ...]:
    return (
        Draws(n_values=rng.choice((48, 64))),
        Draws(n_values=40, scale=10.0 ** rng.randint(-25, -5)),
        Draws(n_copies=512, scale=10.0 ** rng.randint(5, 30)),
    )


STOCHASTIC_ROUNDING = Hidden("02-stochastic-rounding", draws_cases)
