"""Lab 13: hidden cases of the backward pass of attention without the scores."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab13.flash_backward import Backward


def backward_cases(rng: random.Random) -> tuple[Backward, ...]:
    """Causal and not, more heads, odd lengths that no block divides, a tile wider than high and one higher than wide.

    Always both: a count of blocks or an offset by the other block's size asks for too much on one, and shows on the
    other.
    """

    def odd(first: int, last: int) -> int:
        return 2 * rng.randrange(first, last) + 1

    tiles = [(16, 32), (32, 16)]
    rng.shuffle(tiles)
    return (
        Backward(2, odd(25, 31), 16, 16, 16, causal=False),
        Backward(rng.choice((2, 3)), odd(34, 40), 16, *tiles[0]),
        Backward(rng.choice((1, 3)), odd(42, 47), rng.choice((32, 64)), *tiles[1], "float16"),
    )


FLASH_BACKWARD = Hidden("13-flash-backward", backward_cases)
