"""Lab 01: hidden cases of the bytes: parameters, states, activations, depth and batch.

Shapes are drawn, each within bounds in which every usual mistake stands out; what tells mistakes apart comes first.
"""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.activations import Deep, Forward
from labkit.exercises.lab01.batch import Card
from labkit.exercises.lab01.llama import Llama, moments
from labkit.exercises.lab01.params import Model, gpt2, llama, t5
from labkit.exercises.lab01.states import OPTIMIZERS, RECIPES, States


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


def states(rng: random.Random) -> tuple[States, ...]:
    """Every recipe and every optimizer, paired by chance after the pairs that part the mistakes."""
    width = rng.randint(30, 60)
    text = ((rng.randint(200, 400), width), (width, 2 * width), (2 * width, width), (width,))
    image = ((rng.randint(12, 20), rng.randint(5, 9), 3, 3), (rng.randint(8, 20),), (7, rng.randint(20, 40)))
    return (
        *(States(recipe, "adamw", text) for recipe in ("fp32", "fp16_master", "huggingface", "bf16", "amp")),
        # States of 4 bytes, so that two numbers an element are not one of twice the bytes.
        *(States(rng.choice(RECIPES[:-1]), optimizer, text) for optimizer in OPTIMIZERS),
        States("bf16", "momentum", text),
        States("bf16", "adafactor", image),
        States("bf16", "adafactor_momentum", image),
        States("fp16_master", "adafactor", image),
        States("bf16", "adam8bit", image),
    )


def forwards(rng: random.Random) -> tuple[Forward, ...]:
    """Both kinds of attention in both dtypes, a wide vocabulary and a narrow one, shared keys and their opposite."""
    batch, other = rng.choice((2, 3)), rng.choice((2, 3))
    return (
        # Three sequences, so that one of them is not what half of the bytes a number make.
        Forward(64, rng.choice((176, 180, 184)), 3, 8, 2, 180, batch_size=3, seq_len=rng.randint(51, 57)),
        Forward(32, 96, 2, 4, 2, rng.randint(1800, 2400), batch_size=other, seq_len=rng.randint(24, 40)),
        Forward(48, 128, 3, 8, 2, 100, batch_size=2, seq_len=rng.randint(110, 118), attention="eager"),
        Forward(64, rng.randint(24, 32) * 8, 3, 4, 4, 300, batch_size=other, seq_len=40, dtype="float32"),
        Forward(
            32, 64, 3, 4, 1, 300, batch_size=batch, seq_len=rng.randint(80, 110), attention="eager", dtype="float32"
        ),
        # Heads whose widths together are not the hidden size.
        Forward(64, 128, 2, 4, 2, 300, head_dim=rng.choice((28, 44)), batch_size=other, seq_len=rng.randint(32, 48)),
        # Keys wider than the hidden size and short texts: what is kept of them weighs enough.
        Forward(48, 64, 2, 6, 3, 100, head_dim=18, batch_size=3, seq_len=rng.randint(20, 28), attention="eager"),
    )


def depths(rng: random.Random) -> tuple[Deep, ...]:
    """Consecutive depths, depths apart, and the deeper one measured first."""
    return (
        Deep(32, 64, rng.randint(4, 6), 4, 2, rng.randint(300, 500), batch_size=2),
        Deep(48, 96, rng.randint(7, 8), 4, 4, 200, measured_layers=(2, 4), batch_size=1),
        Deep(
            32, 96, rng.randint(5, 6), 2, 1, rng.randint(600, 900), measured_layers=(4, 1), seq_len=rng.randint(24, 40)
        ),
    )


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


PARAM_COUNT = Hidden("01-param-count", models)
MODEL_STATE_BYTES = Hidden("01-model-state-bytes", states)
ACTIVATION_BYTES = Hidden("01-activation-bytes", forwards)
EXTRAPOLATE = Hidden("01-extrapolate", depths)
LARGEST_BATCH = Hidden("01-largest-batch", cards)
