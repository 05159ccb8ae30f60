"""Lab 08, the layer with a low-rank update: hidden cases. Non-square first, with a scale that is not 1."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab08.lora_linear import Layer


def layer_cases(rng: random.Random) -> tuple[Layer, ...]:
    n, wide = rng.randint(5, 12), 16 * rng.randint(14, 18)
    return (
        Layer(n + rng.randint(1, 5), n, rng.randint(2, 4), alpha=rng.choice((9.0, 10.0, 16.0))),
        Layer(n, n, rng.randint(2, 4), alpha=1.0, bias=False),
        Layer(n, n + rng.randint(1, 5), 1, alpha=rng.choice((2.0, 3.0))),
        Layer(wide, wide, rng.randint(3, 5), alpha=rng.choice((6.0, 9.0))),
        Layer(6, 24, 12, alpha=rng.choice((5.0, 18.0)), dropout=rng.choice((0.2, 0.3, 0.4))),
        Layer(n, n + 3, rng.randint(2, 4), alpha=rng.choice((2.0, 5.0)), forward_only=True, dtype="bfloat16"),
    )


def large_layers(rng: random.Random) -> tuple[Layer, ...]:
    """A weight of 110 MiB: the product of the factors would take as much again."""
    return (Layer(5376, 5376, rng.randint(3, 5), alpha=16.0, bias=False, forward_only=True),)


LORA_LINEAR = Hidden("08-lora-linear", layer_cases, memory_cases=large_layers)
