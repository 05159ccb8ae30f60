"""Lab 16: the masters of a model of sharded units after its steps, worked out in one process: rightly, or by a mistake.

No answer is compared with them here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import lru_cache

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


def exact_mean(grads: list[Tensor], case: Units) -> Tensor:
    return torch.stack([grad.double() for grad in grads]).mean(0)


def mean_rounded_up(grads: list[Tensor], case: Units) -> Tensor:
    """The mean, too large by all that adding up and dividing in reduce_dtype may round: a last place for each."""
    each_rounds = torch.finfo(case.dtypes[1]).eps / 2
    most = torch.stack([grad.float().abs() for grad in grads]).mean(0)
    return mean(grads, case) + 2 * case.n_ranks * each_rounds * most


Shards = list[list[Tensor]]
"""Of each rank its shards, as much of them as comes back."""


@once
def at_the_start(run: CaseRun[Units]) -> Shards:
    return by_rank(run.case, masters(run.case, run.tree["seed"]))


def trained(run: CaseRun[Units], reduce: Reduce, stale: str = "", exact: bool = False) -> Shards:
    """The masters after all steps in one process. stale: the weights that are used stay those of the start, in both
    passes ("both") or in the backward pass alone ("backward"). exact: weights and inputs are those that param_dtype can
    hold, and all that is worked out with them is in float64.
    """
    seeds = tuple(one["seed"] for one in run.tree["ranks"])
    return _trained(run.case, run.tree["seed"], seeds, reduce, stale, exact)


def masters(case: Units, seed: int) -> list[Tensor]:
    """Of each unit the float32 weights at the start, in rows by rank."""
    units = (make_unit(case, seed, k) for k in range(len(case.kinds)))
    return [in_rows(list(unit.parameters()), case.n_ranks) for unit in units]


@lru_cache(maxsize=256)
def _trained(case: Units, seed: int, rank_seeds: tuple[int, ...], reduce: Reduce, stale: str, exact: bool) -> Shards:
    """Kept for every answer that is judged on these inputs."""
    start = masters(case, seed)
    rows = [one.double() if exact else one.clone() for one in start]
    for one, kind in zip(rows, case.kinds):
        one.requires_grad_(kind != "frozen")
    learning = [one for one in rows if one.requires_grad]
    optimizer = make("momentum", learning) if learning else None
    for step in range(case.n_steps):
        used = start if stale == "both" else [one.detach() for one in rows]
        used_back = start if stale == "backward" else None
        grads = [torch.zeros_like(one) for one in rows]
        for micro in range(case.n_micro):
            drawn = [draw_rows(case, one, step, micro) for one in rank_seeds]
            for total, found in zip(grads, _gradients(case, drawn, used, used_back, exact), strict=True):
                if found:
                    total += reduce(found, case)
        for one, grad in zip(rows, grads, strict=True):
            one.grad = grad if one.requires_grad else None
        if optimizer:
            optimizer.step()
    return by_rank(case, rows)


def _gradients(
    case: Units,
    drawn: list[tuple[Tensor, Tensor]],
    used: list[Tensor],
    used_back: list[Tensor] | None,
    exact: bool,
) -> list[list[Tensor]]:
    """Of each unit the ranks' gradients, in rows and in the dtype of the weights; none where it is frozen.

    drawn: by rank the input, and what the output is multiplied by. used_back: other weights, for the backward pass.
    """

    def as_used(part: Tensor) -> Tensor:
        gathered = part.to(case.dtypes[0])
        return gathered.double() if exact else gathered

    found: list[list[Tensor]] = [[] for _ in case.kinds]
    units = [make_unit(case, 0, k) for k in range(len(case.kinds))]
    for unit, row in zip(units, used, strict=True):
        for p, part in zip(unit.parameters(), _parts(unit, row)):
            p.data = as_used(part)
    replaced = {}
    for unit, row in zip(units, used_back or (), strict=False):
        for p, part in zip(unit.parameters(), _parts(unit, row)):
            replaced[p.data_ptr()] = as_used(part)
    for x, factor in drawn:
        x = as_used(x)
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


def by_rank(case: Units, rows: list[Tensor]) -> Shards:
    return [[some(one[rank], case) for one in rows] for rank in range(case.n_ranks)]
