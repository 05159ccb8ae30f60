"""Lab 12: SwiGLU with its backward pass. What is asked, given and run."""

from __future__ import annotations

import torch

from labkit.exercises.lab12.shapes import PATIENT, Graded, dout_of, draw, draw_dout, kept_besides
from labkit.spec import Answer, Exercise

LARGE = 100.0
"""The exponential of this overflows in float32."""
N_LARGE = 3


def swiglu_inputs(case: Graded, gen: torch.Generator) -> dict:
    """gate and up: (n_rows, n_cols); dout: the same, or transposed. A few gates are so large that exp overflows."""
    given = {name: draw(case, gen, case.n_rows, case.n_cols, scale=2.0) for name in ("gate", "up")}
    given["gate"][0, :N_LARGE] = LARGE
    return {**given, "dout": draw_dout(case, gen)}


def drive_swiglu(ans, case: Graded, tree: dict, stage) -> dict:
    """Forward and backward in one count, and in between, forward for others; what ctx holds is looked at."""
    gate, up = (tree[name].requires_grad_() for name in ("gate", "up"))
    with stage.meter("traffic"), stage.meter("compiled"):
        out = ans.swiglu(gate, up)
        kept_bytes = kept_besides(out, gate, up)
        ans.swiglu(up, gate)
        dgate, dup = torch.autograd.grad(out, (gate, up), dout_of(case, tree))
    return {"out": out, "dgate": dgate, "dup": dup, "kept_bytes": kept_bytes}


SWIGLU = Exercise(
    id="12-swiglu",
    title="SwiGLU, forward and backward",
    points=3,
    minutes=25,
    difficulty=2,
    answers=(Answer("swiglu"),),
    public=(Graded(5, 150), Graded(2, 1536, "float16", dout_by_columns=True)),
    inputs=swiglu_inputs,
    drive=drive_swiglu,
    run=PATIENT,
    meters=("traffic", "compiled"),
    # The inner width of Llama-3-8B.
    full_size=Graded(4096, 14336, "float16"),
)
