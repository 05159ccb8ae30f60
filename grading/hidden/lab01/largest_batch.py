"""Lab 01: hidden cards. What tells the mistakes apart comes first."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.largest_batch import Card
from labkit.exercises.lab01.llama import Llama, moments


def card(shape: Llama, seq_len: int, batch_size: int, share: float) -> Card:
    """A card on which this batch fits by the meter, and one sequence more lacks (1 - share) of its bytes."""
    enough, more = (moments(shape, n, seq_len).peak for n in (batch_size, batch_size + 1))
    return Card(**vars(shape), seq_len=seq_len, card_bytes=round(enough + share * (more - enough)))


def cards(rng: random.Random) -> tuple[Card, ...]:
    """Batches of some sequences; then cards on which the update decides, and two too small for a sequence."""
    # The states, the update and each part of a sequence are worth different numbers of sequences.
    wide = Llama(32, rng.randint(10, 14) * 8, 3, 4, 2, rng.randint(680, 800))
    even = Llama(48, rng.randint(14, 18) * 8, 2, 4, 4, rng.randint(550, 700))
    small = Llama(32, rng.randint(6, 10) * 8, 2, 4, 4, rng.randint(150, 250))
    exact = Llama(32, 80, 3, 4, 2, 720)
    one, alone = moments(wide, 1, 4), moments(small, 1, 64)
    return (
        card(wide, 4, rng.randint(14, 22), rng.uniform(0.52, 0.6)),
        card(even, 12, rng.randint(8, 13), rng.uniform(0.2, 0.4)),
        Card(**vars(wide), seq_len=4, card_bytes=one.at_update - round(one.update * rng.uniform(0.4, 0.8))),
        Card(**vars(exact), seq_len=4, card_bytes=moments(exact, 1, 4).at_update),
        Card(
            **vars(small),
            seq_len=64,
            card_bytes=alone.at_update + round((alone.at_backward - alone.at_update) * rng.uniform(0.3, 0.8)),
        ),
        Card(**vars(even), seq_len=24, card_bytes=rng.randint(300_000, 500_000)),
    )


LARGEST_BATCH = Hidden("01-largest-batch", cards)
