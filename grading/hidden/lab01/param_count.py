"""Lab 01: hidden models, drawn within bounds in which every usual mistake stands out."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.param_count import Model, gpt2, llama, t5


def models(rng: random.Random) -> tuple[Model, ...]:
    """Three families in two shapes or more; what is shared, tied or gated differs within each."""
    vocab = [rng.randint(200, 900) for _ in range(7)]
    return (
        llama(64, rng.randint(90, 200), rng.randint(2, 4), 8, rng.choice((1, 2, 4)), vocab[0], tie=False),
        llama(48, rng.randint(70, 160), rng.randint(2, 4), 6, 6, vocab[1], tie=True),
        llama(40, rng.randint(70, 160), 2, 5, 1, vocab[2], tie=rng.random() < 0.5, head_dim=rng.choice((16, 24))),
        # Three layers or more, so that the norm after the last is not what each layer lacks.
        gpt2(48, rng.randint(3, 5), 4, rng.randint(60, 200), vocab[3]),
        gpt2(32, rng.randint(3, 5), 2, rng.randint(60, 200), vocab[4], inner=rng.randint(140, 180)),
        t5(48, 12, rng.randint(70, 160), (3, 3), 4, rng.choice((8, 32)), vocab[5], gated=False),
        t5(48, 12, 112, (rng.choice((2, 5)), rng.choice((3, 4))), 4, 16, vocab[5], gated=False),
        t5(40, 16, rng.randint(70, 160), (rng.randint(2, 3), 4), 3, rng.choice((8, 32)), vocab[6], gated=True),
    )


PARAM_COUNT = Hidden("01-param-count", models)
