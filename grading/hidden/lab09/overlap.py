"""Lab 09: hidden cases of copies beside kernels."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab09.overlap import Feed


def feed_cases(rng: random.Random) -> tuple[Feed, ...]:
    """Copies as long as the kernels, shorter, longer, and a single batch; asked for is either order of the two."""
    shares = (1.0, round(rng.uniform(0.5, 0.8), 2), round(rng.uniform(1.3, 2.0), 2))
    feeds = [_feed(rng, share, longer_copy=at == 1) for at, share in enumerate(shares)]
    return (*feeds, Feed(n_batches=1, asked=(1, _seconds(rng), _seconds(rng))))


def _feed(rng: random.Random, share: float, longer_copy: bool) -> Feed:
    shorter_s, longer_s = sorted((_seconds(rng), _seconds(rng) + 1e-3))
    return Feed(
        n_batches=rng.randint(7, 12),
        n_rows=8 * rng.randint(5, 9),
        width=8 * rng.randint(3, 6),
        copy_share=share,
        asked=(rng.randint(4, 40), *((longer_s, shorter_s) if longer_copy else (shorter_s, longer_s))),
    )


def _seconds(rng: random.Random) -> float:
    return rng.randint(10, 900) * 1e-5


OVERLAP = Hidden("09-overlap", feed_cases)
