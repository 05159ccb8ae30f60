"""Lab 15: hidden cases of loss scaling and clipping across ranks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab15.amp_clip import ClippedSteps


def step_cases(rng: random.Random) -> tuple[ClippedSteps, ...]:
    """Equal tables and a clip, then none; one rank's infinity in its own table, in the shared part, several at once."""

    def sizes(n_ranks: int) -> tuple[int, ...]:
        return tuple(rng.randint(2, 9) for _ in range(n_ranks))

    size, scale = rng.randint(2, 9), 2.0 ** rng.randint(6, 14)
    return (
        ClippedSteps((size,) * rng.randint(2, 3), max_norm=rng.uniform(0.5, 1.5), scale=scale),
        ClippedSteps(sizes(3), sizes(3), max_norm=1e3, scale=scale),
        ClippedSteps(
            sizes(2), n_steps=4, spoiled=((rng.randint(1, 2), rng.randint(0, 1), "own", rng.choice(("inf", "nan"))),)
        ),
        ClippedSteps(
            sizes(4),
            n_steps=5,
            spoiled=((rng.randint(0, 1), rng.randint(0, 3), "own", "-inf"), (3, rng.randint(0, 3), "shared", "nan")),
        ),
        ClippedSteps(sizes(2), spoiled=((1, 0, "shared", "inf"), (1, 1, "shared", "-inf"))),
        ClippedSteps(sizes(1), spoiled=((rng.randint(0, 2), 0, "own", "nan"),)),
    )


AMP_CLIP = Hidden("15-amp-clip", step_cases)
