"""Lab 06: hidden models to group and hidden steps of AdamW."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab06.adamw import AdamSteps, Grouping


def adamw_cases(rng: random.Random) -> tuple[AdamSteps | Grouping, ...]:
    """Each public kind with other numbers; at last all of them together."""
    return (
        Grouping(rng.randint(1, 4), tied=False, weight_decay=round(rng.uniform(0.05, 0.3), 3)),
        Grouping(rng.randint(1, 4), tied=True, weight_decay=round(rng.uniform(0.05, 0.3), 3)),
        AdamSteps(n_steps=rng.randint(2, 5), weight_decay=0.0),
        AdamSteps(n_steps=rng.randint(15, 25), weight_decay=round(rng.uniform(0.2, 0.5), 3)),
        AdamSteps(n_steps=rng.randint(4, 9), eps=round(rng.uniform(0.05, 0.2), 3), grad_scale=0.1, beta1=0.85),
        AdamSteps(n_steps=rng.randint(5, 15), n_groups=2, weight_decay=round(rng.uniform(0.3, 0.6), 3)),
        AdamSteps(n_steps=rng.randint(6, 15), rare=True, beta2=0.98),
        AdamSteps(n_steps=10, resumed_after=rng.randint(2, 8)),
        AdamSteps(n_steps=12, n_groups=2, rare=True, resumed_after=rng.randint(3, 9), lr=0.05),
        AdamSteps(n_steps=2, n_tokens=rng.randint(200, 300), width=64),
    )


def large_steps(rng: random.Random) -> tuple[AdamSteps, ...]:
    """48 MiB of weights in 48 tensors: a third state of float32 takes 48 MiB more than the two."""
    return (AdamSteps(n_steps=2, n_tokens=rng.randint(1024, 1048), width=256, n_embeddings=48),)


ADAMW = Hidden("06-adamw", adamw_cases, memory_cases=large_steps)
