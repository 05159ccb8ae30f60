"""Lab 07: hidden samples for tar shards."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.tar_shards import Shards


def shard_cases(rng: random.Random) -> tuple[Shards, ...]:
    """With and without a rest, extensions with a dot, a buffer of one sample and one that holds everything."""
    per_shard = rng.randint(6, 9)

    def shards(n: int, buffer_size: int, extensions: tuple[str, ...] = ("jpg", "cls")) -> Shards:
        broken = rng.randrange(n // per_shard)
        return Shards(n, per_shard, buffer_size, extensions, broken, rng.randint(0, 10_000))

    return (
        # In a buffer of four shards a sample moves much further than within its shard.
        shards(per_shard * rng.randint(7, 9), 4 * per_shard + rng.randint(-3, 3)),
        shards(per_shard * rng.randint(5, 7) + rng.randint(1, per_shard - 1), 14, ("cls", "seg.png", "json")),
        # Eight shards come in the same order twice once in 40,320 times.
        shards(per_shard * 8, 1, ("txt",)),
        shards(per_shard + 1, 50),
    )


TAR_SHARDS = Hidden("07-tar-shards", shard_cases)
