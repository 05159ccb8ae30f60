"""Lab 06: hidden steps of Adafactor."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab06.adafactor import FactoredSteps


def adafactor_cases(rng: random.Random) -> tuple[FactoredSteps, ...]:
    return (
        FactoredSteps(n_steps=1, lr=round(rng.uniform(0.02, 0.1), 3)),
        FactoredSteps(n_steps=rng.randint(10, 16), lr=0.6, beta2_decay=-0.7),
        FactoredSteps(n_steps=rng.randint(4, 8), jump=15.0, d=1.1),
        FactoredSteps(n_steps=5, n_experts=rng.randint(2, 5)),
        FactoredSteps(n_steps=rng.randint(4, 8), n_groups=2, rare=True, lr=0.08, n_experts=2),
        FactoredSteps(n_steps=8, resumed_after=rng.randint(2, 6)),
        FactoredSteps(n_steps=rng.randint(3, 5), eps2=rng.uniform(3.5, 5.0)),
        FactoredSteps(n_steps=rng.randint(3, 5), lr=1e-3, grad_scale=rng.uniform(0.8e-4, 1.5e-4), eps1=1e-6, d=1e3),
        FactoredSteps(n_steps=2, n_tokens=rng.randint(200, 300), width=64),
    )


def large_steps(rng: random.Random) -> tuple[FactoredSteps, ...]:
    """48 MiB of weights in 48 tensors: a full second moment takes 48 MiB, factors 0.2 MiB."""
    return (FactoredSteps(n_steps=2, n_tokens=rng.randint(1024, 1048), width=256, n_embeddings=48),)


ADAFACTOR = Hidden("06-adafactor", adafactor_cases, memory_cases=large_steps)
