"""Lab 16: hidden cases of clipping over shards."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab16.clip import Parts

FAR_BETWEEN = [1 + k / 128 for k in range(1, 52) if 2.5 / 8 < k * k / 128 % 1 < 5.5 / 8]
"""Numbers of bfloat16 whose squares, below 2, lie far from all of its numbers."""


def clip_cases(rng: random.Random) -> tuple[Parts, ...]:
    """Even shards, uneven, empty and many ones; a norm below the limit; 16 bits; nothing replicated; one rank."""

    def shards(n_ranks: int, n: int) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(rng.randint(2, 9) for _ in range(n)) for _ in range(n_ranks))

    far = rng.choice(FAR_BETWEEN)
    return (
        Parts(shards(3, 2), (rng.randint(2, 9), 3), rng.uniform(0.5, 2.0)),
        Parts((*shards(2, 3), (rng.randint(1, 4), 0, 0), (0, 0, 0)), (rng.randint(2, 9),), rng.uniform(0.5, 2.0)),
        Parts(shards(rng.randint(2, 5), 2), (3,), max_norm=rng.uniform(5e2, 5e3)),
        # Two of them: a norm that was rounded to 16 bits may be right by chance.
        Parts(((400, rng.randint(150, 300)),) * 3, (rng.randint(80, 150),), dtype="bfloat16"),
        Parts(((rng.randint(150, 300), 400),) * 2, (rng.randint(80, 150),), dtype="bfloat16"),
        Parts(((rng.randint(40, 90), 40),) * 2, (rng.randint(20, 50),), dtype="bfloat16", every=far),
        Parts(shards(2, rng.randint(5, 7)), (rng.randint(2, 9),)),
        Parts(shards(4, 2), ()),
        Parts(shards(1, 2), (rng.randint(2, 9),)),
    )


CLIP = Hidden("16-clip", clip_cases)
