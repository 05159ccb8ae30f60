"""Lab 13: hidden cases of causal attention without the scores."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab13.flash_attention import Attention


def attention_cases(rng: random.Random) -> tuple[Attention, ...]:
    """Other head sizes, odd lengths that no block divides, tiles wider than high and higher than wide."""

    def odd(first: int, last: int) -> int:
        return 2 * rng.randrange(first, last) + 1

    return (
        Attention(2, odd(34, 40), 16, 32, 16),
        Attention(rng.choice((1, 3)), odd(50, 60), rng.choice((32, 64)), *rng.choice(((16, 32), (32, 32))), "float16"),
    )


FLASH_ATTENTION = Hidden("13-flash-attention", attention_cases)
