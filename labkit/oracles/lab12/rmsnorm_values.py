"""Lab 12: the right values of RMSNorm and its gradients, and how close a result has to come to them."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labkit.compare import compare
from labkit.exercises.lab12.rmsnorm import Norm
from labkit.exercises.lab12.shapes import dout_of, dtype_of
from labkit.spec import CaseRun, Tolerance


def expected(run: CaseRun[Norm]) -> dict:
    """By PyTorch in float64, rounded at the end. What is kept is bounded by a property."""
    case = run.case
    x, weight = (run.tree[name].double().requires_grad_() for name in ("x", "weight"))
    out = F.rms_norm(x, (case.n_cols,), weight, case.eps)
    dx, dweight = torch.autograd.grad(out, (x, weight), dout_of(case, run.tree).double())
    tensors = {"out": out.detach(), "dx": dx, "dweight": dweight}
    return {**{name: one.to(dtype_of(case)) for name, one in tensors.items()}, "kept_bytes": 0}


def tolerances(run: CaseRun[Norm]) -> dict[str, Tolerance]:
    """float32 inside, rounded once; a gradient is a difference of sums of hundreds, so its error is not relative."""
    close = Tolerance(rtol=max(1.01 * torch.finfo(dtype_of(run.case)).eps, 1e-4), atol=1e-4)
    return {"out": close, "dx": close, "dweight": close, "kept_bytes": Tolerance(atol=float("inf"), check_dtype=False)}


def is_right(run: CaseRun[Norm], name: str) -> bool:
    return compare(run.expected[name], run.got[name], tolerances(run)[name]) is None
