"""Lab 19: hidden cases of experts on several ranks."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab19.moe_dispatch import Mixture


def mixtures(rng: random.Random) -> tuple[Mixture, ...]:
    """Ranks with different numbers of tokens, one choice and several, a favourite that leaves ranks without a token."""

    def tokens(n_ranks: int) -> tuple[int, ...]:
        return tuple(rng.randint(3, 9) for _ in range(n_ranks))

    return (
        Mixture(tokens(3), n_local=rng.randint(2, 3), k=2, width=rng.randint(3, 6)),
        Mixture(tokens(4), n_local=2, k=rng.randint(3, 4)),
        Mixture(tokens(rng.randint(2, 5)), n_local=2, k=1),
        Mixture(tokens(3), n_local=2, k=1, favourite=True),
        Mixture(tokens(5), n_local=1, k=2, favourite=True),
        Mixture(tokens(1), n_local=3),
    )


MOE_DISPATCH = Hidden("19-moe-dispatch", mixtures)
