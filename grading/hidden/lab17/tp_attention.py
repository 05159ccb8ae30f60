"""Lab 17: hidden cases of attention whose heads are dealt to the ranks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab17.tp_attention import Heads


def attention_cases(rng: random.Random) -> tuple[Heads, ...]:
    """A key head for each rank or several, copies of one, one for all, micro-batches, weights of a MB, one rank."""

    def sizes() -> tuple[int, int, tuple[int, int]]:
        """head_dim, hidden, tokens"""
        return rng.randint(2, 5), rng.randint(3, 7), (rng.randint(1, 3), rng.randint(3, 6))

    return (
        Heads(3, 6, rng.choice((3, 6)), *sizes()),
        Heads(3, 12, 6, *sizes(), n_micro=2),
        Heads(6, 12, rng.choice((2, 3)), *sizes(), n_micro=rng.randint(1, 2)),
        Heads(4, 8, 2, *sizes(), n_micro=2),
        Heads(rng.choice((3, 5)), 15, 1, *sizes()),
        Heads(6, 6, 3, *sizes(), trains_input=False),
        Heads(3, 6, 3, 100 + rng.randint(0, 9), 800, (1, 4)),
        Heads(1, 6, 2, *sizes()),
    )


def large_cases(rng: random.Random) -> tuple[Heads, ...]:
    """Query and output matrices of 16 MiB, the others of 8 MiB, on 3 ranks."""
    return (Heads(3, 12, 6, 170 + rng.randint(0, 9), 2048, (1, 2)),)


TP_ATTENTION = Hidden("17-tp-attention", attention_cases, memory_cases=large_cases)
