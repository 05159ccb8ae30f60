"""Lab 04: hidden distributions of gradients."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab04.noise_scale import Noisy


def distributions(rng: random.Random) -> tuple[Noisy, ...]:
    """Much noise and little, two micro-batches and many."""
    return (
        Noisy(rng.randint(3, 6), rng.randint(4, 10), rng.uniform(0.3, 0.6), rng.uniform(30, 50)),
        Noisy(2, rng.randint(1, 2), rng.uniform(1.5, 3), rng.uniform(4, 8), n_dims=rng.randint(16, 32)),
        Noisy(rng.randint(7, 10), rng.randint(2, 4), rng.uniform(0.8, 1.2), rng.uniform(80, 120), n_dims=40),
    )


NOISE_SCALE = Hidden("04-noise-scale", distributions)
