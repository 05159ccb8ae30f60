"""Lab 06: hidden blocks, and hidden steps of 8-bit Adam."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab06.adam8bit import Blocks, EightBitSteps


def adam8bit_cases(rng: random.Random) -> tuple[Blocks | EightBitSteps, ...]:
    rows = rng.randint(3, 7)
    return (
        Blocks((rows, 512), "linear", signed=rng.random() < 0.5),
        Blocks((rows, 256)),
        Blocks((rows, 128), block_size=128, signed=False, kind="scales"),
        Blocks((rows, 2, rng.randint(40, 60)), block_size=32),
        Blocks((rows, 256), kind="zeros"),
        Blocks((rows, 64), block_size=64, signed=False, kind="subnormal"),
        EightBitSteps(n_steps=rng.randint(6, 10), n_tokens=rng.randint(80, 120), width=64),
        EightBitSteps(n_steps=8, n_tokens=rng.randint(64, 90), width=64, resumed_after=rng.randint(2, 6)),
        EightBitSteps(
            n_steps=8,
            n_tokens=rng.randint(64, 90),
            width=64,
            beta1=0.0,
            beta2=rng.choice((0.9, 0.99, 0.999)),
            rare=True,
        ),
    )


def large_steps(rng: random.Random) -> tuple[EightBitSteps, ...]:
    """48 MiB of weights in 48 tensors: float32 moments take 73 MiB more than those of one byte."""
    return (EightBitSteps(n_steps=1, n_tokens=rng.randint(1024, 1048), width=256, n_embeddings=48),)


ADAM8BIT = Hidden("06-adam8bit", adam8bit_cases, memory_cases=large_steps)
