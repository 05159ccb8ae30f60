"""Lab 05: hidden cases of layers whose weights live on the host."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab05.stream_weights import Stack


def stack_cases(rng: random.Random) -> tuple[Stack, ...]:
    """The first tells most mistakes apart: two micro-batches or more, two bytes per parameter."""
    shares = (1.0, round(rng.uniform(0.5, 0.8), 2), round(rng.uniform(1.4, 2.0), 2))
    return tuple(_stack(rng, share, first=at == 0) for at, share in enumerate(shares))


def _stack(rng: random.Random, share: float, first: bool) -> Stack:
    bytes_per_param = 2.0 if first else rng.choice((0.5, 1.0, 2.0, 4.0))
    return Stack(
        n_layers=rng.randint(7, 11),
        width=8 * rng.randint(8, 10),
        n_tokens=rng.randint(5, 8),
        n_batches=rng.randint(2 if first else 1, 3),
        compute_share=share,
        rig=(bytes_per_param, rng.uniform(20, 2500) * 1e12, rng.uniform(2, 500) * 1e9),
    )


STREAM_WEIGHTS = Hidden("05-stream-weights", stack_cases)
