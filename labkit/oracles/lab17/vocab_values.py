"""Lab 17: PyTorch's own cross-entropy of the whole logits, and how close that of cut ones has to be."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labkit.exercises.lab17.vocab_loss import Logits, some
from labkit.oracles.hints import once
from labkit.oracles.lab17.vocab_mistakes import parts, targets
from labkit.spec import CaseRun, Tolerance


@once
def by_torch(run: CaseRun[Logits]) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and gradient of the whole logits in float64."""
    case = run.case
    whole = torch.cat(parts(run), 1).double().requires_grad_()
    loss = F.cross_entropy(whole, targets(run), ignore_index=case.ignore_index)
    counted = targets(run) != case.ignore_index
    loss = loss + case.z_weight * whole.logsumexp(1)[counted].square().mean()
    (grad,) = torch.autograd.grad(loss * case.dloss, whole)
    return loss.detach(), grad


def expected(run: CaseRun[Logits]) -> dict:
    """On every rank the loss, and its own columns of the gradient in the dtype of the logits."""
    loss, grad = by_torch(run)
    own = grad.to(getattr(torch, run.case.dtype)).split(run.case.columns, 1)
    return {"ranks": [{"loss": loss.float(), "grad": some(one.contiguous(), run.case)} for one in own]}


def tolerance(run: CaseRun[Logits]) -> Tolerance:
    """float32 arithmetic on logits of up to `scale` times 5: half an eps of that is the error of an exponent. A
    gradient may be rounded to its dtype twice."""
    eps = torch.finfo(torch.float32).eps
    rtol = 1e-5 + 20 * eps * run.case.scale
    if run.case.dtype == "bfloat16":
        rtol = 2.02 * torch.finfo(torch.bfloat16).eps
        # The loss itself is float32.
        return Tolerance(rtol=rtol, atol=2e-6)
    return Tolerance(rtol=rtol, atol=2e-6 + eps * run.case.scale)


def loss_is_float32(run: CaseRun[Logits]) -> str | None:
    """A property: where the logits are in 16 bits, the loss has more of them."""
    loss, _ = by_torch(run)
    for rank, one in enumerate(run.got["ranks"]):
        if abs(float(one["loss"]) - float(loss)) > 1e-4 * abs(float(loss)) + 1e-4 * run.case.scale / 200:
            return f"the loss of rank {rank} is {float(one['loss']):.7g}, and it should be {float(loss):.7g}"
    return None
