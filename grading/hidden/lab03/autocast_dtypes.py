"""Lab 03: hidden blocks. The known ones come first, in other dtypes, then blocks drawn at random."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab03.autocast_dtypes import AutocastBlock


def blocks(rng: random.Random) -> tuple[AutocastBlock, ...]:
    low, other = rng.sample(("float16", "bfloat16"), 2)
    return (
        AutocastBlock("gpt", low=low),
        AutocastBlock("llama", low=other),
        AutocastBlock("head", low=low),
        AutocastBlock("conv", low=other),
        AutocastBlock("double", low=low),
        AutocastBlock("head", low=other, weights=other),
        AutocastBlock("llama", low=low, x=other, weights=other),
        AutocastBlock("drawn", low=low, n_ops=rng.randint(20, 30)),
        AutocastBlock("each", low=low, x=low),
        AutocastBlock("each", low=low, x=other),
        AutocastBlock("drawn", low=other, x=low, n_ops=rng.randint(20, 30)),
    )


AUTOCAST_DTYPES = Hidden("03-autocast-dtypes", blocks)
