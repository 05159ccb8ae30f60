"""Lab 16: what one process gets that holds everything, by PyTorch's own optimizers. Flat parameters only.

What mistakes make stands in `step_mistakes`, and which one an answer made is for the oracles to say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab16.optimizers import LEARNING_RATE, make, shard_size
from labkit.exercises.lab16.shards import ShardedSteps, draw_grads, draw_params, seen
from labkit.oracles.hints import once
from labkit.spec import CaseRun, Tolerance

ROUNDING = 2.0**-24
"""The most that one rounding to float32 changes, relative to the number."""
LARGEST_GRADIENT = 1.2

Flat = Tensor
"""All parameters in one row, after the last step."""


def bound(case: ShardedSteps) -> Tolerance:
    """How far two float32 runs of the same steps may end apart that add up in different orders: roundings, counted.

    A gradient is a sum of n_micro · n_ranks terms of one sign, so either order has it within n_micro + n_ranks
    roundings of its value, and an optimizer makes about 8 more in each step until its update is there. No update is
    larger than lr · LARGEST_GRADIENT · n_steps: momentum has added up as much by then, and AdamW divides by about what
    it has. The weight itself is rounded twice a step, by its decay and by the update.
    """
    roundings = case.n_micro + case.n_ranks + 8 * case.n_steps
    updates = case.n_steps * LEARNING_RATE * LARGEST_GRADIENT * case.n_steps
    return Tolerance(atol=2 * roundings * ROUNDING * updates, rtol=2 * 2 * case.n_steps * ROUNDING)


def flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _row(case: ShardedSteps, grads: Sequence[Tensor]) -> Tensor:
    return flat([torch.zeros_like(grad) if k == case.idle else grad for k, grad in enumerate(grads)])


def trained(optimizer: str, start: Tensor, grads: Sequence[Tensor], forgets: bool = False) -> Flat:
    """The parameters after all steps. forgets: every step has a new optimizer."""
    weights = start.clone().requires_grad_()
    steps = make(optimizer, [weights])
    for grad in grads:
        weights.grad = grad.clone()
        steps = make(optimizer, [weights]) if forgets else steps
        steps.step()
    return weights.detach()


class Played:
    """The start and each rank's gradients of a run, all parameters in one row: grads[step][rank], and last[step][rank]
    of the last micro-batch alone; reduced_again[step][rank] adds up, for each micro-batch, all gradients of the run
    until then. A parameter without a gradient has zeros."""

    def __init__(self, run: CaseRun[ShardedSteps]) -> None:
        case, seed = run.case, run.tree["seed"]
        self.case, self.optimizer, self.n = case, case.optimizer, case.n_ranks
        self.start = flat(draw_params(case, seed))
        self.size = shard_size(len(self.start), self.n)
        self.grads, self.last, self.reduced_again = [], [], []
        so_far = [torch.zeros_like(self.start)] * self.n
        for step in range(case.n_steps):
            micros = [
                [_row(case, draw_grads(case, seed, one["seed"], step, micro)) for micro in range(case.n_micro)]
                for one in run.tree["ranks"]
            ]
            self.grads.append([torch.stack(rank).mean(0) for rank in micros])
            self.last.append([rank[-1] / case.n_micro for rank in micros])
            running = [total + torch.stack(rank).cumsum(0) / case.n_micro for total, rank in zip(so_far, micros)]
            self.reduced_again.append([one.sum(0) for one in running])
            so_far = [one[-1] for one in running]

    def means(self) -> list[Tensor]:
        return [torch.stack(step).mean(0) for step in self.grads]

    def with_gradients(self, grads: Sequence[Tensor], forgets: bool = False) -> list[Flat]:
        """All ranks take the same steps."""
        return [trained(self.optimizer, self.start, grads, forgets)] * self.n

    def right(self) -> list[Flat]:
        return self.with_gradients(self.means())


@once
def got_flat(run: CaseRun) -> list[Flat]:
    """What each rank has at the end."""
    return [flat(one["after"]) for one in run.got["ranks"]]


@once
def played(run: CaseRun[ShardedSteps]) -> Played:
    return Played(run)


def in_shapes(case: ShardedSteps, row: Flat) -> list[Tensor]:
    """The parameters in such a row, as much of them as comes back."""
    parts = row.split([math.prod(shape) for shape in case.shapes])
    return seen(case, [part.view(shape) for part, shape in zip(parts, case.shapes)])


def shown(case: ShardedSteps, rows: Sequence[Flat]) -> list[Flat]:
    """Of each row what comes back, in a row again."""
    return [flat(in_shapes(case, row)) for row in rows]


@once
def right_rows(run: CaseRun[ShardedSteps]) -> list[Flat]:
    """What each rank should have, as `got_flat` has it."""
    return shown(run.case, played(run).right())


@once
def right_params(run: CaseRun[ShardedSteps]) -> list[Tensor]:
    """What every rank should have, as much of it as comes back."""
    return in_shapes(run.case, played(run).right()[0])


def as_in_one_process(run: CaseRun[ShardedSteps]) -> str | None:
    """A property: at the end all ranks have the weights of one process that averages the ranks' gradients."""
    for rank, one in enumerate(run.got["ranks"]):
        if found := compare(right_params(run), one["after"], bound(run.case)):
            place = f"parameter {found.path}{list(found.index) if found.index else ''}"
            steps = f"after {run.case.n_steps} steps"
            return f"{steps} rank {rank} has {found.got} in {place}, and one process has {found.expected}"
    return None


def replicas(run: CaseRun) -> str | None:
    """A property: all ranks have the same bits."""
    first, *others = (one["after"] for one in run.got["ranks"])
    for rank, other in enumerate(others, 1):
        if compare(first, other) is not None:
            return f"the parameters of rank 0 and rank {rank} are close, but not the same bits"
    return None


replicas.hint = "All ranks copy what the all-gather brought, their own part included: then they have the same bits."
