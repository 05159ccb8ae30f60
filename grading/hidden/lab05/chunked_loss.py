"""Lab 05: hidden cases of a loss in chunks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab05.chunked_loss import Head


def head_cases(rng: random.Random) -> tuple[Head, ...]:
    """A last chunk of one token, one that is silent, an upstream gradient, a single chunk longer than all.

    With one token left over, dW is larger than dx: of what is held, only the largest is named.
    """
    n_tokens = 96 * rng.randint(4, 5) + 1
    return (
        Head(512, rng.randint(12, 20), 512, 64, ignored=0.35),
        Head(
            n_tokens,
            24,
            n_tokens + rng.randint(10, 40),
            96,
            ignored=0.4,
            upstream=rng.choice((0.5, 3.0)),
        ),
        Head(512, 16, 512, 64, ignored=0.25, ignore_index=rng.choice((0, 1, 2)), silent_end=True),
        Head(rng.randint(60, 90), 8, 700, 128, ignored=0.0, upstream=rng.choice((0.25, 4.0)), loud=rng.uniform(40, 50)),
    )


def large_head(rng: random.Random) -> tuple[Head, ...]:
    """The logits of all tokens would take 128 MiB, those of a chunk 8."""
    return (Head(4096, 16, rng.randint(8000, 8192), 256, ignored=0.2),)


CHUNKED_LOSS = Hidden("05-chunked-loss", head_cases, memory_cases=large_head)
