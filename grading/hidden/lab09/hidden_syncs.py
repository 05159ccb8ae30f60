"""Lab 09: hidden cases of a training loop that must not wait."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab09.hidden_syncs import Loop


def loop_cases(rng: random.Random) -> tuple[Loop, ...]:
    """A step without labels, two that overflow, each of the reasons to skip one."""
    return tuple(_loop(rng, *counts) for counts in ((1, 0, 0), (0, 2, 0), (2, 1, 1)))


def _loop(rng: random.Random, n_empty: int, n_overflow: int, n_infinite: int) -> Loop:
    n_steps = rng.randint(9, 14)
    # Not the first: where nothing was trained yet, a weight of NaN would leave no step to average over.
    skipped = rng.sample(range(2, n_steps), n_empty + n_overflow + n_infinite)
    return Loop(
        n_steps=n_steps,
        n_rows=rng.randint(12, 32),
        width=rng.randint(6, 12),
        n_classes=rng.randint(4, 8),
        ignored_share=round(rng.uniform(0.2, 0.5), 2),
        empty=tuple(sorted(skipped[:n_empty])),
        overflow=tuple(sorted(skipped[n_empty : n_empty + n_overflow])),
        infinite=tuple(sorted(skipped[n_empty + n_overflow :])),
        lr=round(rng.uniform(0.1, 0.6), 2),
    )


HIDDEN_SYNCS = Hidden("09-hidden-syncs", loop_cases)
