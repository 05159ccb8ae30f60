"""Lab 05: hidden cases of a training script with leaks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab05.find_the_leak import LeakyTraining


def training_cases(rng: random.Random) -> tuple[LeakyTraining, ...]:
    return (
        LeakyTraining(rng.randint(13, 16), rng.randint(90, 120), 16, 128),
        LeakyTraining(rng.randint(14, 18), 64, rng.randint(20, 28), 160),
        LeakyTraining(2, 40, 8, 64),
    )


def large_training(rng: random.Random) -> tuple[LeakyTraining, ...]:
    """A hidden activation takes 6 MiB: eighteen steps that keep one each hold 108 MiB more."""
    return (LeakyTraining(18, rng.randint(16_000, 16_384), 4, 96),)


FIND_THE_LEAK = Hidden("05-find-the-leak", training_cases, memory_cases=large_training)
