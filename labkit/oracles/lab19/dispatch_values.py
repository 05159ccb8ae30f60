"""Lab 19: what is true of experts on several ranks: one process that calls each expert on all tokens, and autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab19.moe_dispatch import Mixture
from labkit.oracles.hints import once
from labkit.spec import CaseRun, Tolerance

CLOSE = Tolerance(atol=1e-5, rtol=1e-4)


@once
def dense(run: CaseRun[Mixture]) -> dict[str, list[Tensor]]:
    """Each expert on every token of every rank, weighted by what the token chose; float64, by rank."""
    ranks = run.tree["ranks"]
    x, weights, matrices = (
        [one[name].double().requires_grad_() for one in ranks] for name in ("x", "weights", "matrices")
    )
    every = torch.cat(matrices)
    outs = []
    for tokens, share, one in zip(x, weights, ranks, strict=True):
        each = torch.tanh(torch.einsum("tw,ewv->tev", tokens, every))
        outs.append((each.gather(1, one["chosen"][..., None].expand(-1, -1, run.case.width)) * share[..., None]).sum(1))
    loss = sum((out * one["d_out"].double()).sum() for out, one in zip(outs, ranks, strict=True))
    loss.backward()
    return {
        "out": [out.detach() for out in outs],
        "d_x": [one.grad for one in x],
        "d_weights": [one.grad for one in weights],
        "d_matrices": [one.grad for one in matrices],
    }


@once
def wanted(run: CaseRun[Mixture]) -> Tensor:
    """(rank, expert) -> how many of the rank's choices are for this expert."""
    case = run.case
    return torch.stack([one["chosen"].flatten().bincount(minlength=case.n_experts) for one in run.tree["ranks"]])


def expect(run: CaseRun[Mixture]) -> dict[str, Any]:
    rows = wanted(run).sum(0).view(run.case.n_ranks, -1).tolist()
    parts = dense(run)
    return {
        "ranks": [
            {name: part[rank].float() for name, part in parts.items()} | {"rows": rows[rank]}
            for rank in range(run.case.n_ranks)
        ]
    }
