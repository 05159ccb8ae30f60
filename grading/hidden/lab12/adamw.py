"""Lab 12: hidden cases of a step of AdamW."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab12.adamw import Step


def step_cases(rng: random.Random) -> tuple[Step, ...]:
    """The first step and an early one, with other constants: later on, the correction of the bias would not show."""

    def constants() -> dict[str, float]:
        return {
            "lr": rng.uniform(0.05, 0.2),
            "beta1": rng.uniform(0.85, 0.92),
            "beta2": rng.uniform(0.94, 0.97),
            "eps": rng.uniform(1e-3, 2e-3),
            "weight_decay": rng.uniform(0.3, 0.6),
        }

    return (
        Step(16 * rng.randrange(30, 60), step=rng.randrange(3, 6), **constants()),
        Step(2 * rng.randrange(300, 500) + 1, **constants()),
    )


ADAMW = Hidden("12-adamw", step_cases)
