"""Lab 01: hidden forward passes. What tells the mistakes apart comes first."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.activation_bytes import Forward


def forwards(rng: random.Random) -> tuple[Forward, ...]:
    """Both kinds of attention in both dtypes, a wide vocabulary and a narrow one, shared keys and their opposite.

    With the vocabularies and lengths that are left out, one mistake leads to the sum of another.
    """
    batch, other = rng.choice((2, 3)), rng.choice((2, 3))
    return (
        # Three sequences, so that one of them is not what half of the bytes a number make.
        Forward(64, rng.choice((176, 180, 184)), 3, 8, 2, 180, batch_size=3, seq_len=rng.randint(51, 57)),
        Forward(32, 96, 2, 4, 2, rng.randint(1800, 2400), batch_size=other, seq_len=rng.randint(24, 40)),
        Forward(48, 128, 3, 8, 2, 100, batch_size=2, seq_len=rng.randint(110, 118), attention="eager"),
        Forward(64, rng.randint(24, 32) * 8, 3, 4, 4, 300, batch_size=other, seq_len=40, dtype="float32"),
        Forward(
            32, 64, 3, 4, 1, 280, batch_size=batch, seq_len=rng.randint(88, 110), attention="eager", dtype="float32"
        ),
        # Heads whose widths together are not the hidden size.
        Forward(64, 128, 2, 4, 2, 300, head_dim=rng.choice((28, 44)), batch_size=other, seq_len=rng.randint(41, 48)),
        # Keys wider than the hidden size and short texts: what is kept of them weighs enough.
        Forward(48, 64, 2, 6, 3, 100, head_dim=18, batch_size=3, seq_len=rng.randint(20, 28), attention="eager"),
        # So flat that what is kept outside of layers weighs enough.
        Forward(128, rng.choice((24, 32, 40)), 2, 4, 1, rng.randint(48, 60), batch_size=3, seq_len=rng.randint(18, 21)),
    )


ACTIVATION_BYTES = Hidden("01-activation-bytes", forwards)
