"""Lab 20: hidden runs to predict, and what they cost: the largest of the moments of a step.

A test holds these figures to the game's bill, which takes seconds for each run.
"""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab20.config import Config
from labkit.spec import CaseRun


def resident(c: Config) -> int:
    """Weights, states on the card, and gradients where they are summed over micro-batches."""
    copies_of_weights = 2 if c.n_micro > 1 else 1
    return c.size.n_parameters * (copies_of_weights * c.bytes_per_number + 8 * (not c.states_on_host))


def hidden_tensor(c: Config) -> int:
    """Bytes of one tensor of the model's width, for the tokens of a micro-batch."""
    return c.micro_batch * c.seq_len * c.width * c.bytes_per_number


def of_a_block(c: Config) -> int:
    """What a block keeps for the backward pass, as a number of such tensors."""
    return 1 if c.recompute else 16


def at_the_loss(c: Config) -> int:
    """All that the blocks and the last norm keep, and three tensors of logits in float32."""
    logits = 3 * 4 * c.vocab * c.micro_batch * c.seq_len
    return resident(c) + logits + hidden_tensor(c) * (2 + c.n_layers * of_a_block(c))


def in_block(c: Config, below: int) -> int:
    """The backward pass of the block that has so many below it; gradients of those above it are there."""
    square = c.width**2
    new_gradients = 4 * square + c.vocab * c.width
    if c.n_micro == 1:
        new_gradients += 12 * square * (c.n_layers - 1 - below)
    return resident(c) + new_gradients * c.bytes_per_number + hidden_tensor(c) * (22 + below * of_a_block(c))


def at_the_update(c: Config) -> int:
    """All gradients, and what the update of the largest weight takes."""
    if not c.states_on_host:
        each = 8
    elif c.bytes_per_number == 4:
        each = 16
    else:
        each = 20
    return c.size.n_parameters * (2 * c.bytes_per_number + 8 * (not c.states_on_host)) + each * largest_weight(c)


def largest_weight(c: Config) -> int:
    return c.width * max(4 * c.width, c.vocab)


def expected(run: CaseRun[Config]) -> dict[str, float]:
    c, n = run.case, run.case.size.n_parameters
    moments = (at_the_loss(c), in_block(c, c.n_layers - 1), in_block(c, 0), at_the_update(c))
    ring = 2 * (c.n_cards - 1) / c.n_cards * n * c.bytes_per_number
    return {
        "peak_bytes": float(max(moments)),
        "moved_bytes": float(c.n_steps * (ring + 16 * n * c.states_on_host)),
        "tokens": float(c.n_steps * c.n_cards * c.n_micro * c.micro_batch * c.seq_len),
    }


def runs(rng: random.Random) -> tuple[Config, ...]:
    """Peaks at every moment, states here and there, one card and four."""

    def some(n_texts: int, n_micro: int, most_words: int = 30_000, **fixed) -> Config:
        heads = rng.randint(8, 20)
        words, steps = rng.randrange(8_000, most_words), rng.randrange(20, 200)
        return Config(128 * heads, heads, words, 1024, n_texts, n_micro, steps, **fixed)

    def narrow(words: int, seq_len: int, n_texts: int) -> Config:
        steps, n_micro = rng.randrange(20, 200), rng.choice((2, 3))
        return Config(1024, 8, words, seq_len, n_texts, n_micro, steps, bytes_per_number=2, recompute=True)

    def shallow() -> Config:
        """The two new gradients beside a block are a tenth of its peak, and not as much as two tensors of logits."""
        heads, steps = rng.randint(7, 12), rng.randrange(20, 200)
        words = 512 * heads - rng.randrange(40)
        return Config(128 * heads, heads, words, 48 * heads, 2, 2, steps, 4, True, True, n_layers=2)

    return (
        narrow(rng.randrange(26_000, 34_000), 1024, rng.choice((4, 6))),
        narrow(rng.randrange(300, 900), 2048, rng.choice((6, 8, 10))),
        some(4, 1, n_layers=rng.choice((3, 5, 6))),
        some(2, 3, most_words=14_000, bytes_per_number=2, n_cards=4),
        some(1, 3, bytes_per_number=2, recompute=True, states_on_host=True),
        some(1, 2, recompute=True, states_on_host=True, n_cards=4, n_layers=3),
        shallow(),
    )


PREDICT = Hidden("20-predict", runs, expect=expected)
