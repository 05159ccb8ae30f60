"""Lab 13: the backward pass of attention without the matrix of scores. What is asked, given and run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.exercises.lab12.shapes import PATIENT
from labkit.exercises.lab13.flash_attention import LEVEL, Attention
from labkit.spec import Answer, Exercise

KEY_LEVEL = 24.0
"""The first element of every key. That of a query is plus or minus LEVEL / KEY_LEVEL, so all of its scores lie near
LEVEL or -LEVEL, where exp of a score that nothing was subtracted from overflows, or is 0."""


@dataclass(frozen=True)
class Backward(Attention):
    """causal: whether a query sees the keys up to its own alone, or all of them."""

    causal: bool = True


def backward_inputs(case: Backward, gen: torch.Generator) -> dict:
    """q, k, v, dout: drawn; out, lse: what the forward pass made of them. All (n_heads, seq, d_head) but lse."""
    shape, dtype = (case.n_heads, case.seq, case.d_head), getattr(torch, case.dtype)
    q, k, v, dout = (torch.randn(shape, generator=gen) for _ in range(4))
    q[..., 0], k[..., 0] = LEVEL / KEY_LEVEL * case.d_head**0.5, KEY_LEVEL
    q[:, 1::2, 0] *= -1
    q, k, v, dout = (one.to(dtype) for one in (q, k, v, dout))
    out, lse = forward(q.double(), k.double(), v.double(), case.causal)
    return {"q": q, "k": k, "v": v, "out": out.to(dtype), "lse": lse.float(), "dout": dout}


def forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """The result of attention, and the logarithm of each row's sum of exponentials, (n_heads, seq)."""
    scores = q @ k.transpose(1, 2) * q.shape[2] ** -0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[1:], dtype=torch.bool).triu(1), -float("inf"))
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def drive_backward(ans, case: Backward, tree: dict, stage) -> dict:
    """Compiled in float16 alone: exact products of float32 run on no tensor core, and take long to compile."""
    given = [tree[name] for name in ("q", "k", "v", "out", "lse", "dout")]
    with stage.meter("traffic"):
        if case.dtype == "float32":
            dq, dk, dv = ans.attention_backward(*given, case.causal, case.block_m, case.block_n)
        with stage.meter("compiled"):
            if case.dtype == "float16":
                dq, dk, dv = ans.attention_backward(*given, case.causal, case.block_m, case.block_n)
    return {"dq": dq, "dk": dk, "dv": dv}


FLASH_BACKWARD = Exercise(
    id="13-flash-backward",
    title="The gradients of attention without its scores",
    points=1,
    minutes=75,
    difficulty=3,
    answers=(Answer("attention_backward"),),
    # A square tile as wide as a head takes every factor, transposed or not, so that a wrong value shows which it was.
    public=(
        Backward(1, 53, 16, 16, 16, causal=False),
        Backward(2, 75, 16, 32, 16),
        Backward(1, 93, 64, 16, 32, "float16"),
    ),
    inputs=backward_inputs,
    drive=drive_backward,
    run=PATIENT,
    meters=("traffic", "compiled"),
    optional=True,
    # Tiles of scores are the largest blocks, so that their size shows.
    full_size=Backward(32, 8192, 32, 64, 64, "float16"),
)
