"""Lab 17: hidden cases of a cross-entropy over cut logits."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab17.vocab_loss import Logits


def loss_cases(rng: random.Random) -> tuple[Logits, ...]:
    """Ignored tokens, by a number that no column has and by one that some rank has; z-loss, large logits, padding on
    several ranks, 16 bits; one case in which a rank's own logits are most of what it may hold; one rank."""
    columns = rng.randint(8, 12)
    return (
        Logits(rng.randint(3, 5), rng.randint(6, 9), rng.randint(8, 14), dloss=rng.uniform(0.3, 3.0)),
        Logits(4, rng.randint(9, 12), columns, ignored=3, ignore_index=rng.randint(columns, 3 * columns - 1)),
        Logits(rng.randint(3, 5), 8, rng.randint(8, 12), ignored=2, scale=rng.uniform(150, 300)),
        Logits(3, 9, rng.randint(8, 12), ignored=rng.randint(1, 4), z_weight=rng.uniform(0.1, 0.3)),
        Logits(4, 7, 9, padded=rng.randint(10, 17), dloss=2.0),
        Logits(3, 10, rng.randint(60, 90), dtype="bfloat16", scale=4.0, ignored=1),
        Logits(6, 120, rng.randint(500, 560), ignored=rng.randint(1, 9), z_weight=0.1),
        Logits(1, 5, rng.randint(8, 20), ignored=1),
    )


def large_logits(rng: random.Random) -> tuple[Logits, ...]:
    """All logits are 48 MiB, and a rank's own 6."""
    return (Logits(8, 512, 3072 + 8 * rng.randrange(16), ignored=rng.randint(1, 20)),)


VOCAB_LOSS = Hidden("17-vocab-loss", loss_cases, memory_cases=large_logits)
