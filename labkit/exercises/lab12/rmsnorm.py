"""Lab 12: RMSNorm with its backward pass. What is asked, given and run."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab12.shapes import PATIENT, Graded, dout_of, draw, draw_dout, dtype_of, kept_besides
from labkit.spec import Answer, Exercise


@dataclass(frozen=True)
class Norm(Graded):
    eps: float = 1e-6


def norm_inputs(case: Norm, gen: torch.Generator) -> dict:
    """x, other: (n_rows, n_cols), their rows with means and sizes of their own; dout: as x, or transposed.

    weight: (n_cols,). The squares of the last row of x are beyond the range of float16.
    """
    sizes = torch.linspace(0.1, 2.0, case.n_rows)[:, None]
    sizes[-1] = 300.0
    rows = [(torch.randn(case.n_rows, case.n_cols, generator=gen) + 0.5) * sizes for _ in range(2)]
    return {
        "x": rows[0].to(dtype_of(case)),
        "other": rows[1].to(dtype_of(case)),
        "weight": 1 + draw(case, gen, case.n_cols, scale=0.3),
        "dout": draw_dout(case, gen),
    }


def drive_rmsnorm(ans, case: Norm, tree: dict, stage) -> dict:
    """Forward and backward in one count, and in between, forward for another x; what ctx holds is looked at."""
    x, weight = (tree[name].requires_grad_() for name in ("x", "weight"))
    with stage.meter("traffic"), stage.meter("compiled"):
        out = ans.rmsnorm(x, weight, case.eps)
        kept_bytes = kept_besides(out, x, weight)
        ans.rmsnorm(tree["other"], weight, case.eps)
        dx, dweight = torch.autograd.grad(out, (x, weight), dout_of(case, tree))
    return {"out": out, "dx": dx, "dweight": dweight, "kept_bytes": kept_bytes}


RMSNORM = Exercise(
    id="12-rmsnorm",
    title="RMSNorm, forward and backward",
    points=4,
    minutes=35,
    difficulty=3,
    answers=(Answer("rmsnorm"),),
    public=(Norm(22, 100, eps=0.05), Norm(14, 256, "float16", dout_by_columns=True)),
    inputs=norm_inputs,
    drive=drive_rmsnorm,
    run=PATIENT,
    meters=("traffic", "compiled"),
    full_size=Norm(4096, 4096, "float16"),
)
