"""Lab 07: hidden corpora, one of them with a file that does not fit into the memory."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab07.memory_map import Corpus


def corpora(rng: random.Random) -> tuple[Corpus, ...]:
    """Small vocabularies and large ones, windows that divide the tokens and that do not."""
    return (
        Corpus(rng.randint(20, 40), 40, rng.randint(5, 30), rng.randint(40_000, 65_536)),
        Corpus(rng.randint(20, 40), 40, rng.randint(5, 30), rng.randint(65_537, 260_000)),
        Corpus(rng.randint(3, 6), 50, 1, 65_536),
        # Of these 448 MiB, 192 may be had as memory of one's own.
        Corpus(rng.randint(5, 9), 20, 64, rng.choice((50_257, 128_256)), large_mib=448),
    )


MEMORY_MAP = Hidden("07-memory-map", corpora)
