"""Lab 09: hidden cases of traces and profiled steps."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab09.profile import Session


def session_cases(rng: random.Random) -> tuple[Session, ...]:
    """A device that lags behind, one that starves, and another. The first tells most mistakes apart, the last those
    about numbers of steps with two digits."""
    return (
        _session(rng, launch_us=8.0, waits=False, n_unsteady=rng.randint(2, 3), n_active=rng.randint(2, 4)),
        _session(rng, launch_us=rng.uniform(30, 60), waits=True, scale=0.6, n_unsteady=rng.randint(3, 5), n_active=1),
        _session(rng, launch_us=rng.uniform(3, 20), waits=False, n_cold=9, n_unsteady=2, n_active=rng.randint(1, 3)),
    )


def _session(
    rng: random.Random, launch_us: float, scale: float = 1.0, n_cold: int | None = None, **values: object
) -> Session:
    return Session(
        n_cold=n_cold or rng.randint(1, 3),
        n_steps=rng.randint(2, 3),
        n_layers=rng.randint(2, 3),
        launch_us=round(launch_us, 2),
        kernel_scale=round(scale * rng.uniform(0.8, 1.6), 2),
        **values,
    )


PROFILE = Hidden("09-profile", session_cases)
