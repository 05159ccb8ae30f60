"""Lab 05: hidden cases of a selective checkpoint."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab05.selective import PRODUCTS, Network


def network_cases(rng: random.Random) -> tuple[Network, ...]:
    """All four products first, in another order; then each of them where it is easily forgotten."""
    some = tuple(rng.sample(PRODUCTS, 3))
    return (
        Network(tuple(rng.sample(PRODUCTS, 4)), 3, 4 * rng.randint(60, 70)),
        Network((*some, rng.choice(some)), 2, 4 * rng.randint(44, 56), 48),
        Network(("addmm", "bmm"), 3),
    )


def large_network(rng: random.Random) -> tuple[Network, ...]:
    """Tensors of 4 MiB: a block keeps the 16 MiB of its four products, and without a policy some 60 MiB more."""
    return (Network(("mm", "addmm", "bmm", "baddbmm"), 4, 4 * rng.randint(16_000, 16_384), 16),)


SELECTIVE = Hidden("05-selective", network_cases, memory_cases=large_network)
