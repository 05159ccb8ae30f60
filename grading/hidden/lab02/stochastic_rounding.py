"""Lab 02: hidden draws."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab02.stochastic_rounding import Draws


def draws_cases(rng: random.Random) -> tuple[Draws, ...]:
    return (
        Draws(n_values=rng.choice((48, 64))),
        Draws(n_values=40, scale=10.0 ** rng.randint(-25, -5)),
        Draws(n_copies=512, scale=10.0 ** rng.randint(5, 30)),
    )


STOCHASTIC_ROUNDING = Hidden("02-stochastic-rounding", draws_cases)
