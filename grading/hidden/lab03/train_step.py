"""Lab 03: hidden batches for the training step. What tells the mistakes apart comes first."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab03.train_step import Steps


def steps(rng: random.Random) -> tuple[Steps, ...]:
    """No clipping at first, then clipping, then batches that overflow."""
    scale = 2.0 ** rng.randint(9, 13)
    norm = round(rng.uniform(0.01, 0.02), 4)
    n_steps = rng.randint(3, 5)
    return (
        Steps("bfloat16", max_norm=round(rng.uniform(50, 150), 1), n_steps=n_steps),
        Steps("float16", max_norm=round(rng.uniform(50, 150), 1), n_steps=n_steps, init_scale=2.0**16),
        Steps("float16", max_norm=norm, n_rows=rng.randint(48, 80), init_scale=scale),
        Steps(
            "float16",
            max_norm=norm,
            n_steps=5,
            overflow_in_steps=tuple(sorted(rng.sample(range(1, 5), 2))),
            init_scale=scale,
        ),
        Steps("bfloat16", max_norm=norm, n_rows=rng.randint(48, 80)),
        Steps("float16", max_norm=norm, n_steps=3, overflow_in_steps=(0,), init_scale=2.0 ** rng.randint(8, 10)),
    )


TRAIN_STEP = Hidden("03-train-step", steps)
