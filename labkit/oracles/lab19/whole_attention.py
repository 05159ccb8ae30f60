"""Lab 19: causal attention to a whole text that lies on several ranks, and its gradients, in float64 by autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab19.ring_attention import Ring, some
from labkit.oracles.hints import once
from labkit.spec import CaseRun, Tolerance

CLOSE = Tolerance(atol=2e-5, rtol=2e-4)
"""float32 in another order."""
NAMES = ("q", "k", "v")


def wide(run: CaseRun[Ring], name: str) -> list[Tensor]:
    """The tensors of this name of all ranks, in float64."""
    return [one[name].double() for one in run.tree["ranks"]]


@once
def block_scores(run: CaseRun[Ring], rank: int, source: int, seen_as: int | None = None) -> Tensor:
    """Of a rank's queries and the keys of `source`, with the positions of rank `seen_as` for the keys if given."""
    at = run.tree["positions"]
    found = wide(run, "q")[rank] @ wide(run, "k")[source].mT * run.case.d**-0.5
    hidden = at[source if seen_as is None else seen_as] > at[rank][:, None]
    return found.masked_fill(hidden, -torch.inf)


def block(run: CaseRun[Ring], rank: int, source: int, seen_as: int | None = None) -> tuple[Tensor, Tensor]:
    """(out, lse) of a rank's queries over the keys of one rank."""
    found = block_scores(run, rank, source, seen_as)
    lse = found.logsumexp(-1)
    return (found - lse.nan_to_num(neginf=0.0)[..., None]).exp() @ wide(run, "v")[source], lse


def merged(blocks: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Of several blocks of keys together."""
    lse = torch.stack([one for _, one in blocks]).logsumexp(0)
    return sum((one - lse).exp().nan_to_num()[..., None] * out for out, one in blocks), lse


@once
def whole(run: CaseRun[Ring]) -> dict[str, list[Tensor]]:
    """out, lse, d_q, d_k and d_v by rank, from one process that has everything."""
    n, at = run.case.n_ranks, run.tree["positions"].flatten()
    q, k, v = (torch.cat(wide(run, name), 1).requires_grad_() for name in NAMES)
    found = (q @ k.mT * run.case.d**-0.5).masked_fill(at > at[:, None], -torch.inf)
    out, lse = found.softmax(-1) @ v, found.logsumexp(-1)
    grads = torch.autograd.grad(out, (q, k, v), torch.cat(wide(run, "d_out"), 1))
    parts = {"out": out.detach(), "lse": lse.detach(), **dict(zip(("d_q", "d_k", "d_v"), grads, strict=True))}
    return {name: list(part.chunk(n, 1)) for name, part in parts.items()}


def expect(run: CaseRun[Ring]) -> dict[str, Any]:
    parts = whole(run)
    if run.case.forward_only:
        parts = {"out": [some(out) for out in parts["out"]], "lse": parts["lse"]}
    return {"ranks": [{name: part[rank].float() for name, part in parts.items()} for rank in range(run.case.n_ranks)]}
