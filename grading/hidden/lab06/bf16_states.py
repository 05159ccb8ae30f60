"""Lab 06: hidden steps of AdamW in bfloat16."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab06.bf16_states import Bf16Steps


def bf16_cases(rng: random.Random) -> tuple[Bf16Steps, ...]:
    return (
        Bf16Steps(n_steps=rng.randint(250, 320), n_weights=rng.randint(6, 12), lr=round(rng.uniform(8e-4, 1.2e-3), 6)),
        Bf16Steps(n_steps=rng.randint(250, 320), weight_decay=round(rng.uniform(0.4, 0.6), 3)),
        Bf16Steps(n_steps=rng.randint(8, 16), n_weights=rng.randint(50, 80), lr=1e-2, beta1=0.8, eps=0.01),
        Bf16Steps(n_steps=rng.randint(2, 4), n_weights=256, n_copies=4, weight_decay=0.5, idle=True),
    )


def large_bf16(rng: random.Random) -> tuple[Bf16Steps, ...]:
    """16 million weights, 32 MiB, in 32 tensors: a float32 copy, or float32 moments, take 64 MiB more."""
    return (Bf16Steps(n_steps=1, n_weights=rng.randint(16_384, 16_640), lr=1e-2, n_tensors=32),)


BF16_STATES = Hidden("06-bf16-states", bf16_cases, memory_cases=large_bf16)
