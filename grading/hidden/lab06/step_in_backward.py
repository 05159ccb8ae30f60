"""Lab 06: hidden models that are trained by their backward passes alone."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab06.step_in_backward import REFUSED, Asked, Training


def training_cases(rng: random.Random) -> tuple[Training | Asked, ...]:
    return (
        Training(rng.randint(3, 8), optimizer="sgd", n_steps=1),
        Training(rng.randint(3, 8), n_steps=rng.randint(3, 5)),
        Training(rng.randint(3, 8), tied=True, n_steps=rng.randint(2, 4)),
        Training(rng.randint(3, 8), frozen=True, tied=True, n_steps=2),
        Training(rng.randint(12, 16), width=256, optimizer="sgd", n_steps=2, watched=True),
        *map(Asked, REFUSED),
    )


def large_models(rng: random.Random) -> tuple[Training, ...]:
    """24 layers of 4 MiB: the gradients of all of them take 96 MiB."""
    return (Training(24, width=1024, optimizer="sgd", n_steps=1, watched=True),)


STEP_IN_BACKWARD = Hidden("06-step-in-backward", training_cases, memory_cases=large_models)
