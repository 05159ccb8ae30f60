"""Lab 01: the largest micro-batch that fits a card."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.exercises.lab01.llama import Llama, moments
from labkit.spec import Answer, Exercise

MEASURED_TOKENS = 64
"""Of the smaller of the two batches from which `needs` tells what grows with the batch."""


@dataclass(frozen=True)
class Card(Llama):
    """Training on sequences of `seq_len` tokens, with `card_bytes` of memory."""

    seq_len: int = 32
    card_bytes: int = 0


def needs(case: Card, gen) -> dict[str, dict[str, int]]:
    """needs: what a step holds, in bytes; what grows with the batch, from two batches that differ by their size.

    The batches are of so many tokens that the loss is where a step needs most before the update.
    """
    batch_size = -(-MEASURED_TOKENS // case.seq_len)
    once, twice = (moments(case.shape(), n, case.seq_len) for n in (batch_size, 2 * batch_size))
    return {
        "needs": {
            "weights": once.weights,
            "gradients": once.gradients,
            "optimizer": once.optimizer,
            "activations_per_sequence": (twice.kept - once.kept) // batch_size,
            "loss_per_sequence": (twice.loss - once.loss) // batch_size,
            "update": once.update,
        }
    }


LARGEST_BATCH = Exercise(
    id="01-largest-batch",
    title="The largest batch that fits",
    points=0.9,
    optional=True,
    minutes=10,
    difficulty=2,
    answers=(Answer("largest_batch"),),
    public=(
        Card(32, 96, 3, 4, 2, 700, seq_len=4, card_bytes=1_469_675),
        Card(48, 128, 2, 4, 4, 600, seq_len=12, card_bytes=2_743_842),
        Card(32, 96, 3, 4, 2, 700, seq_len=4, card_bytes=682_140),  # no room for the update
        Card(32, 96, 3, 4, 2, 700, seq_len=4, card_bytes=744_904),  # as large as the update needs, to the byte
        Card(32, 64, 2, 4, 4, 200, seq_len=64, card_bytes=450_000),  # room for the update, and not for one sequence
    ),
    inputs=needs,
    drive=lambda ans, case, tree, stage: {"out": ans.largest_batch(tree["needs"], case.card_bytes)},
)
