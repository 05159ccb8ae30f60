"""Lab 03: hidden blocks. The known ones come first, in other dtypes, then blocks drawn at random."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab03.autocast_dtypes import Block


def blocks(rng: random.Random) -> tuple[Block, ...]:
    low, other = rng.sample(("float16", "bfloat16"), 2)
    return (
        Block("gpt", low=low),
        Block("llama", low=other),
        Block("head", low=low),
        Block("conv", low=other),
        Block("double", low=low),
        Block("head", low=other, weights=other),
        Block("llama", low=low, x=other, weights=other),
        Block("drawn", low=low, n_ops=rng.randint(20, 30)),
        Block("each", low=low, x=low),
        Block("each", low=low, x=other),
        Block("drawn", low=other, x=low, n_ops=rng.randint(20, 30)),
    )


AUTOCAST_DTYPES = Hidden("03-autocast-dtypes", blocks)
