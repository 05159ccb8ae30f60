"""Lab 17: hidden cases of an MLP that is cut over the ranks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab17.tp_mlp import MLP


def mlp_cases(rng: random.Random) -> tuple[MLP, ...]:
    """Even parts, uneven and empty ones, micro-batches, an input without gradient, weights of a MB, one rank."""
    return (
        MLP(3, rng.randint(3, 6), 3 * rng.randint(2, 4), (rng.randint(2, 4), 2)),
        MLP(4, rng.randint(3, 6), 4 * rng.randint(2, 4) + rng.randint(1, 3)),
        MLP(5, rng.randint(2, 5), rng.randint(2, 4), (rng.randint(3, 6),)),
        MLP(rng.choice((3, 5)), rng.randint(3, 6), rng.choice((11, 13)), n_micro=rng.randint(2, 3)),
        MLP(3, rng.randint(3, 6), rng.randint(7, 11), trains_input=False),
        MLP(3, 400 + rng.randint(0, 60), 1200 + rng.randint(0, 90), (3,)),
        MLP(1, 4, rng.randint(5, 9)),
    )


def large_cases(rng: random.Random) -> tuple[MLP, ...]:
    """Two matrices of 16 MiB on 3 ranks."""
    return (MLP(3, 1024, 4096 + rng.randint(0, 99), (2,)),)


TP_MLP = Hidden("17-tp-mlp", mlp_cases, memory_cases=large_cases)
