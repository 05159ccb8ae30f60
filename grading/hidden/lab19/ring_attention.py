"""Lab 19: hidden cases of attention around a ring.

What the forward pass holds is read from outside. What the backward pass holds is its own meter's word: a ring that is
large enough to show it would send more than the router lets through.
"""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab19.ring_attention import Ring


def rings(rng: random.Random) -> tuple[Ring, ...]:
    """Texts in zigzag and dealt by chance, two ranks and several, one head, and keys of some 100 kB."""
    return (
        Ring(3, length=2 * rng.randint(2, 4), n_heads=rng.randint(1, 3), d=rng.choice((3, 5, 8))),
        Ring(rng.randint(4, 6), length=2 * rng.randint(1, 3)),
        Ring(2, length=2 * rng.randint(1, 4), n_heads=1),
        Ring(rng.randint(3, 5), length=rng.randint(3, 7), by_chance=True),
        Ring(8, length=32, n_heads=rng.randint(7, 9), d=128),
    )


def large_rings(rng: random.Random) -> tuple[Ring, ...]:
    """20 MiB of keys and values on each of 4 ranks, which do not send more than the router lets through."""
    return (Ring(4, length=32, n_heads=rng.randint(295, 305), d=256, forward_only=True),)


RING_ATTENTION = Hidden("19-ring-attention", rings, memory_cases=large_rings)
