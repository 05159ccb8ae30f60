"""Lab 13: hidden cases of cross-entropy in place."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab13.cross_entropy import Tokens


def token_cases(rng: random.Random) -> tuple[Tokens, ...]:
    """Odd vocabularies, an index to ignore that is a token, gradients that come in other than 1, and many targets.

    All numbers are odd, so that the compiled kernels are the same for all of them.
    """

    def odd(first: int, last: int) -> int:
        return 2 * rng.randrange(first, last) + 1

    return (
        Tokens(odd(2, 4), odd(2200, 2400), ignore_index=odd(2, 40), dloss=rng.uniform(1.5, 3.0)),
        Tokens(odd(2, 4), odd(2200, 2400), "bfloat16"),
        Tokens(odd(2, 4), odd(2200, 2400), "bfloat16", ignore_index=-odd(2, 40), dloss=rng.uniform(0.2, 0.6)),
        # More targets than one block of 1024 of them.
        Tokens(odd(520, 560), odd(200, 240), ignore_index=odd(2, 40), n_ignored=rng.randrange(1000, 1030)),
        # An odd number of tokens above 256 counts, which bfloat16 does not have.
        Tokens(odd(130, 150), odd(200, 240), "bfloat16", n_ignored=1),
    )


CROSS_ENTROPY = Hidden("13-cross-entropy", token_cases)
