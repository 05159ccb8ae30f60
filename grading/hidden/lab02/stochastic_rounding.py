"""Lab 02: hidden draws."""

from __future__ import annotations

import random
from dataclasses import replace

from grading.hidden import Hidden
from labkit.exercises.lab02.stochastic_rounding import JUST_ABOVE, Draws


def draws_cases(rng: random.Random) -> tuple[Draws, ...]:
    return (
        Draws(n_values=rng.choice((48, 64))),
        Draws(n_values=40, scale=10.0 ** rng.randint(-25, -5)),
        Draws(n_copies=512, scale=10.0 ** rng.randint(5, 30)),
        replace(JUST_ABOVE, scale=10.0 ** rng.randint(-25, 25)),
    )


STOCHASTIC_ROUNDING = Hidden("02-stochastic-rounding", draws_cases)
