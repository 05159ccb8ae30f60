"""Lab 13: causal attention without the matrix of scores, forward. What is asked, given and run."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab12.shapes import PATIENT
from labkit.spec import Answer, Case, Exercise

LEVEL = 150.0
"""What the first element of queries and keys adds to every score: nothing to the softmax, and too much for exp.

Every second query has it below zero, where exp is 0 and a masked score of 0 outweighs all others.
"""


ALIKE, DRIFT = slice(3, None, 4), 4.0
"""In float16, these queries weigh all keys alike, and values rise by DRIFT at first and fall by it then: sums of many
nearly cancel, which shows where they were rounded on the way."""


@dataclass(frozen=True)
class Attention(Case):
    """n_heads sequences of seq queries, keys and values of d_head numbers; block_m queries and block_n keys a tile."""

    n_heads: int = 1
    seq: int = 75
    d_head: int = 32
    block_m: int = 32
    block_n: int = 16
    dtype: str = "float32"

    @property
    def n_bytes(self) -> int:
        """The bytes of the queries; those of the keys, the values and the result are as many."""
        return self.n_heads * self.seq * self.d_head * getattr(torch, self.dtype).itemsize


def attention_inputs(case: Attention, gen: torch.Generator) -> dict:
    """q, k, v: (n_heads, seq, d_head). Later keys are longer, so that the running maximum keeps rising."""
    q, k, v = (torch.randn(case.n_heads, case.seq, case.d_head, generator=gen) for _ in range(3))
    q, k = 2 * q, k * torch.linspace(0.5, 1.5, case.seq)[:, None]
    q[..., 0], k[..., 0] = LEVEL / 8 * case.d_head**0.5, 8.0
    q[:, 1::2, 0] *= -1
    if case.dtype == "float16":
        q[:, ALIKE] = 0
        v += DRIFT * torch.where(torch.arange(case.seq) < case.seq // 2, 1, -1)[:, None]
    return {name: one.to(getattr(torch, case.dtype)) for name, one in zip("qkv", (q, k, v))}


def drive_attention(ans, case: Attention, tree: dict, stage) -> dict:
    with stage.meter("traffic"), stage.meter("compiled"):
        return {"out": ans.attention(tree["q"], tree["k"], tree["v"], case.block_m, case.block_n)}


FLASH_ATTENTION = Exercise(
    id="13-flash-attention",
    title="Causal attention without the scores",
    points=5,
    minutes=45,
    difficulty=3,
    answers=(Answer("attention"),),
    public=(Attention(2), Attention(1, 93, 64, 16, 32, "float16")),
    inputs=attention_inputs,
    drive=drive_attention,
    run=PATIENT,
    meters=("traffic", "compiled"),
    # Tiles of scores are the largest blocks by far, so that their size shows.
    full_size=Attention(32, 8192, 32, 64, 128, "float16"),
)
