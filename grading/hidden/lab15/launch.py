"""Lab 15: a hidden training to be cut short: begun by a checkpoint of drawn numbers, killed at drawn steps."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab15.launch import InterruptedTraining
from labkit.exercises.lab15.torchrun import N_RANKS


def training_cases(rng: random.Random) -> tuple[InterruptedTraining, ...]:
    """One launch, which takes seconds. Every start lies inside an epoch, and no kill beside a checkpoint's step."""
    every, batch, per_epoch = 5, rng.choice((2, 3)), 12
    begun = per_epoch + rng.choice((4, 6, 7))
    # The first kill comes two or three steps after a checkpoint, and after two of them at least.
    kill_steps = (begun // every + rng.choice((2, 3))) * every + rng.choice((2, 3)) - begun
    case = InterruptedTraining(
        n_rows=per_epoch * batch * N_RANKS,
        n_features=rng.randint(3, 5),
        batch=batch,
        n_epochs=5,
        every=every,
        kill_rank=rng.randrange(N_RANKS),
        kill_steps=kill_steps,
        kill_saves=2,
        begun_steps=begun,
    )
    return (case,)


LAUNCH = Hidden("15-launch", training_cases)
