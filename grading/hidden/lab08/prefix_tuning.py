"""Lab 08, prefix tuning: hidden cases. What tells the mistakes apart comes first, as in the public ones."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab08.prefix_tuning import Prefix


def prefix_cases(rng: random.Random) -> tuple[Prefix, ...]:
    """Three layers first, then padding, then the network; heads as wide as the hidden state only once.

    No two prefixes are equally long: one that an answer keeps from an earlier case would be taken for a wrong one.
    """
    first, second = rng.sample(range(3, 7), 2)
    third = rng.choice([n for n in range(2, 6) if n not in (first, second)])
    return (
        Prefix(n_prompt=first, length=rng.randint(6, 10), n_layers=3),
        Prefix(n_prompt=second, length=rng.randint(6, 10), n_kv_heads=1, padding="right"),
        Prefix(n_prompt=third, n_kv_heads=4, head_dim=8, padding="left", bottleneck=rng.randint(5, 9)),
        Prefix(
            n_prompt=1, batch=rng.randint(3, 5), n_heads=8, n_kv_heads=2, head_dim=rng.choice((6, 10)), bottleneck=3
        ),
    )


PREFIX_TUNING = Hidden("08-prefix-tuning", prefix_cases)
