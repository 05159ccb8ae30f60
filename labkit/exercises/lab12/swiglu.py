"""Lab 12: SwiGLU with its backward pass. What is asked, fed and run."""

from __future__ import annotations

import torch

from labkit.exercises.lab12.shapes import PATIENT, Rows, draw, kept_besides
from labkit.spec import Answer, Exercise


def drive_swiglu(ans, case: Rows, tree: dict, stage) -> dict:
    """Forward and backward in one count; what ctx holds is looked at in between."""
    gate, up = (tree[name].requires_grad_() for name in ("gate", "up"))
    with stage.meter("traffic"), stage.meter("compiled"):
        out = ans.swiglu(gate, up)
        kept_bytes = kept_besides(out, gate, up)
        dgate, dup = torch.autograd.grad(out, (gate, up), tree["dout"])
    return {"out": out, "dgate": dgate, "dup": dup, "kept_bytes": kept_bytes}


SWIGLU = Exercise(
    id="12-swiglu",
    title="SwiGLU, forward and backward",
    points=3,
    minutes=25,
    difficulty=2,
    answers=(Answer("swiglu"),),
    public=(Rows(5, 150), Rows(3, 256, "float16")),
    inputs=lambda case, gen: {
        name: draw(case, gen, case.n_rows, case.n_cols, scale=2.0) for name in ("gate", "up", "dout")
    },
    drive=drive_swiglu,
    run=PATIENT,
    meters=("traffic", "compiled"),
)
