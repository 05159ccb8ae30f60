"""Lab 06: hidden steps of AdamW on lists of tensors."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab06.foreach import ForeachSteps


def foreach_cases(rng: random.Random) -> tuple[ForeachSteps, ...]:
    """Each public kind with other numbers; at last all of them together.

    The large one comes earlier: until its result is sent, it counts as held when the next case is to be measured.
    """
    return (
        ForeachSteps(n_steps=rng.randint(3, 6), weight_decay=round(rng.uniform(0.2, 0.5), 3)),
        ForeachSteps(n_embeddings=rng.randint(30, 50)),
        ForeachSteps(n_embeddings=rng.randint(30, 50), mixed=True),
        ForeachSteps(n_steps=3, n_tokens=rng.randint(1024, 1100), width=256, n_embeddings=4),
        ForeachSteps(n_groups=2, mixed=True, weight_decay=round(rng.uniform(0.3, 0.6), 3)),
        ForeachSteps(n_steps=rng.randint(6, 12), rare=True, beta2=0.98),
        ForeachSteps(n_steps=10, resumed_after=rng.randint(3, 8), eps=round(rng.uniform(0.05, 0.2), 3), grad_scale=0.1),
        ForeachSteps(n_steps=10, n_embeddings=20, mixed=True, n_groups=2, rare=True, resumed_after=rng.randint(4, 7)),
    )


def large_steps(rng: random.Random) -> tuple[ForeachSteps, ...]:
    """48 MiB of weights in 48 tensors: a second temporary list, or a third state, takes 48 MiB more."""
    return (ForeachSteps(n_steps=3, n_tokens=rng.randint(1024, 1048), width=256, n_embeddings=48),)


FOREACH = Hidden("06-foreach", foreach_cases, memory_cases=large_steps)
