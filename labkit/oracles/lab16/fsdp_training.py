"""Lab 16: the masters of a model of sharded units after its steps, worked out in one process: rightly, or by a mistake.

No answer is compared with them here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab16.fsdp import Units, draw_rows, loss_of, make_unit, some
from labkit.exercises.lab16.optimizers import make
from labkit.oracles.hints import once
from labkit.spec import CaseRun

Rows = list[Tensor]
"""Of one unit: a row for each rank."""
Reduce = Callable[[list[Tensor], Units], Tensor]
"""(the ranks' gradients of a unit, each in n rows, filled up with zeros) -> what each rank's shard gets, in rows."""


def in_rows(tensors: list[Tensor], n: int) -> Tensor:
    row = torch.cat([tensor.detach().flatten() for tensor in tensors])
    return F.pad(row, (0, -len(row) % n)).view(n, -1)


def mean(grads: list[Tensor], case: Units) -> Tensor:
    return torch.stack([grad.to(case.dtypes[1]).float() for grad in grads]).mean(0)


def added(grads: list[Tensor], case: Units) -> Tensor:
    return torch.stack([grad.float() for grad in grads]).sum(0)


def own(grads: list[Tensor], case: Units) -> Tensor:
    return torch.stack([grad[rank].float() for rank, grad in enumerate(grads)])


def averaged_twice(grads: list[Tensor], case: Units) -> Tensor:
    return mean(grads, case) / case.n_ranks


@once
def masters(run: CaseRun[Units]) -> list[Tensor]:
    """Of each unit the float32 weights at the start, in rows by rank."""
    units = (make_unit(run.case, run.tree["seed"], k) for k in range(len(run.case.kinds)))
    return [in_rows(list(unit.parameters()), run.case.n_ranks) for unit in units]


@once
def trained(run: CaseRun[Units], reduce: Reduce, stale: str = "") -> list[Tensor]:
    """The masters after all steps in one process. stale: the weights that are used stay those of the start, in both
    passes ("both") or in the backward pass alone ("backward").
    """
    case = run.case
    rows = [one.clone() for one in masters(run)]
    for one, kind in zip(rows, case.kinds):
        one.requires_grad_(kind != "frozen")
    learning = [one for one in rows if one.requires_grad]
    optimizer = make("momentum", learning) if learning else None
    for step in range(case.n_steps):
        used = masters(run) if stale == "both" else [one.detach() for one in rows]
        used_back = masters(run) if stale == "backward" else None
        grads = [torch.zeros_like(one) for one in rows]
        for micro in range(case.n_micro):
            for total, by_rank in zip(grads, _gradients(run, used, step, micro, used_back), strict=True):
                if by_rank:
                    total += reduce(by_rank, case)
        for one, grad in zip(rows, grads, strict=True):
            one.grad = grad if one.requires_grad else None
        if optimizer:
            optimizer.step()
    return [one.detach() for one in rows]


def _gradients(
    run: CaseRun[Units], used: list[Tensor], step: int, micro: int, used_back: list[Tensor] | None = None
) -> list[list[Tensor]]:
    """Of each unit the ranks' gradients, in rows and in the dtype of the weights; none where it is frozen.

    used_back: other weights that the backward pass uses.
    """
    case = run.case
    found: list[list[Tensor]] = [[] for _ in case.kinds]
    units = [make_unit(case, run.tree["seed"], k) for k in range(len(case.kinds))]
    for unit, row in zip(units, used, strict=True):
        for p, part in zip(unit.parameters(), _parts(unit, row)):
            p.data = part.to(case.dtypes[0])
    replaced = {}
    for unit, row in zip(units, used_back or (), strict=False):
        for p, part in zip(unit.parameters(), _parts(unit, row)):
            replaced[p.data_ptr()] = part.to(case.dtypes[0])
    for one in run.tree["ranks"]:
        x, factor = draw_rows(case, one["seed"], step, micro)
        for unit in units:
            unit.zero_grad()
        with _in_backward(replaced):
            for unit in units:
                x = unit(x)
        if x.requires_grad:
            loss_of(x, factor, case).backward()
        for k, unit in enumerate(units):
            if case.kinds[k] != "frozen":
                found[k].append(in_rows([p.grad for p in unit.parameters()], case.n_ranks))
    return found


def _in_backward(replaced: dict[int, Tensor]) -> contextlib.AbstractContextManager:
    """The backward pass finds these tensors in place of those that begin at these addresses."""
    if not replaced:
        return contextlib.nullcontext()
    return torch.autograd.graph.saved_tensors_hooks(
        lambda kept: (replaced.get(kept.data_ptr(), kept.detach()), kept.shape, kept.stride()),
        lambda packed: packed[0].as_strided(*packed[1:]),
    )


def _parts(unit: torch.nn.Module, row: Tensor) -> list[Tensor]:
    """The row of a unit as its parameters."""
    params = list(unit.parameters())
    sizes = [p.numel() for p in params]
    return [part.view_as(p) for p, part in zip(params, row.flatten()[: sum(sizes)].split(sizes))]


def by_rank(run: CaseRun[Units], rows: list[Tensor]) -> list[list[Tensor]]:
    """Of each rank its shards, as much of them as comes back."""
    return [[some(one[rank], run.case) for one in rows] for rank in range(run.case.n_ranks)]
