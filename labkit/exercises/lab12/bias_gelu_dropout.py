"""Lab 12: bias, GELU, dropout and a residual sum in one kernel, its mask never stored. What is asked, given and run."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab12.shapes import PATIENT, Graded, dout_of, draw, draw_dout, kept_besides
from labkit.spec import Answer, Exercise

SEEDS_APART = 2**20
"""The other seed is this much larger: its low bits are the same, and so is its parity."""


@dataclass(frozen=True)
class Dropped(Graded):
    """p: the probability that an element is dropped. seed: neither it nor the next is a multiple of 16, so that all
    cases share a compiled kernel."""

    p: float = 0.25
    seed: int = 7


def dropout_inputs(case: Dropped, gen: torch.Generator) -> dict:
    """x and y: (n_rows, n_cols); dout: the same, or transposed; bias: (n_cols,)."""
    matrices = {name: draw(case, gen, case.n_rows, case.n_cols) for name in ("x", "y")}
    return {**matrices, "bias": draw(case, gen, case.n_cols), "dout": draw_dout(case, gen)}


def drive_dropout(ans, case: Dropped, tree: dict, stage) -> dict:
    """Forward with a seed, with another one and with the next one, and backward from the first, in one count."""
    x, bias, y = (tree[name].requires_grad_() for name in ("x", "bias", "y"))
    with stage.meter("traffic"), stage.meter("compiled"):
        out = ans.bias_gelu_dropout(x, bias, y, case.p, case.seed)
        kept_bytes = kept_besides(out, x, bias, y)
        other = ans.bias_gelu_dropout(x, bias, y, case.p, case.seed + SEEDS_APART)
        following = ans.bias_gelu_dropout(x, bias, y, case.p, case.seed + 1)
        dx, dbias, dy = torch.autograd.grad(out, (x, bias, y), dout_of(case, tree))
    gradients = {"dx": dx, "dbias": dbias, "dy": dy}
    return {"out": out, "other": other, "next": following, **gradients, "kept_bytes": kept_bytes}


BIAS_GELU_DROPOUT = Exercise(
    id="12-bias-gelu-dropout",
    title="Four operations in one, and a mask that nobody stores",
    points=3,
    minutes=30,
    difficulty=3,
    answers=(Answer("bias_gelu_dropout"),),
    public=(Dropped(15, 150), Dropped(3, 1100, dout_by_columns=True, p=0.5, seed=12345)),
    inputs=dropout_inputs,
    drive=drive_dropout,
    run=PATIENT,
    meters=("traffic", "compiled"),
    full_size=Dropped(4096, 4096),
)
