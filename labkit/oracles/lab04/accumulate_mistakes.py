"""Lab 04: epochs of accumulated gradients, right or with mistakes, played for all ranks at once on a case's texts.

A mistake shows differently in every case, since each step starts from the weights of the last: what it makes of a case
is computed as a whole. Nothing is told to a student here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab04.accumulate import IGNORED, LEARNING_RATE, N_EPOCHS, Accumulation
from labkit.spec import CaseRun


@dataclass(frozen=True)
class Counts:
    """Tokens that a micro-batch may be divided by: of itself, of its rank's window, of all ranks' windows.

    padded: of all ranks' windows with the padding. not_zero: the same, without labels that are 0. epoch: of all ranks
    and windows. so_far: of all ranks, from the epoch's start to this window. n_micro: micro-batches in this window.
    """

    own: int
    rank: int
    every: int
    padded: int
    not_zero: int
    epoch: int
    so_far: int
    n_micro: int
    case: Accumulation


@dataclass(frozen=True)
class Loop:
    """How an epoch goes. The defaults are right.

    divisor: what a micro-batch's sum of token losses is divided by. afterwards: what the sum over the ranks is divided
    by. rescale: .grad is divided by the window's tokens after each micro-batch instead of once. share: gradients are
    summed over the ranks; "average": and divided by their number. clip: where the norm is limited; "mine": before the
    sum over the ranks, "undivided": before the last division. clear: when gradients are set to zero. rest: what becomes
    of a last window that is short. early: the windows' numbers are counted from 0, so the first has one micro-batch and
    the last has what is left.
    """

    divisor: Callable[[Counts], float] = lambda counts: counts.every
    afterwards: Callable[[Counts], float] = lambda counts: 1.0
    rescale: bool = False
    share: Literal["sum", "average", "each micro-batch", "never"] = "sum"
    clip: Literal["window", "micro-batch", "mine", "undivided", "each parameter", "values", "never"] = "window"
    clear: Literal["after the step", "each micro-batch", "before the step", "each epoch", "never"] = "after the step"
    rest: Literal["step", "leak", "drop"] = "step"
    early: bool = False


def gradient_of(values: list[Tensor], x: Tensor, y: Tensor) -> list[Tensor]:
    """The gradient of the sum of the token losses with respect to the network's parameters."""
    leaves = [value.requires_grad_() for value in values]
    table, w1, b1, w2, b2 = leaves
    logits = F.linear(torch.tanh(F.linear(F.embedding(x, table), w1, b1)), w2, b2)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=IGNORED, reduction="sum")
    return [grad.detach() for grad in torch.autograd.grad(loss, leaves)]


def n_counted(y: Tensor) -> int:
    return int((y != IGNORED).sum())


def clipped(grads: list[Tensor], max_norm: float) -> list[Tensor]:
    norm = torch.stack([grad.norm() for grad in grads]).norm()
    return [grad * min(1.0, max_norm / (float(norm) + 1e-6)) for grad in grads]


def play(run: CaseRun[Accumulation], loop: Loop) -> dict[str, Any]:
    """gradients and weights of every rank, as the driver returns them."""
    case, parts = run.case, run.tree["ranks"]
    values = [[value.clone() for value in run.tree["weights"]] for _ in parts]
    zeros = [[torch.zeros_like(value) for value in rank] for rank in values]
    sums, steps = list(zeros), [[] for _ in parts]
    starts = [0, *range(1 if loop.early else case.n_accumulate, case.n_micro, case.n_accumulate)]
    windows = [range(*ends) for ends in pairwise([*starts, case.n_micro])]
    epoch = sum(n_counted(y) for part in parts for y in part["y"])
    for _ in range(N_EPOCHS):
        so_far = 0
        if loop.clear == "each epoch":
            sums = list(zeros)
        for window in windows:
            of_rank = [sum(n_counted(part["y"][i]) for i in window) for part in parts]
            so_far += sum(of_rank)
            of_window = (
                sum(of_rank),
                sum(part["y"][i].numel() for part in parts for i in window),
                sum(int((part["y"][i] != 0).sum()) for part in parts for i in window),
                epoch,
                so_far,
                len(window),
                case,
            )
            for i in window:
                for rank, part in enumerate(parts):
                    x, y = part["x"][i], part["y"][i]
                    counts = Counts(n_counted(y), of_rank[rank], *of_window)
                    if loop.clear == "each micro-batch":
                        sums[rank] = zeros[rank]
                    # Without a label the mean is NaN, but PyTorch's gradient of it is 0.
                    divisor = 1.0 if loop.rescale or not counts.own else loop.divisor(counts)
                    new = [grad / divisor for grad in gradient_of(values[rank], x, y)]
                    sums[rank] = [total + grad for total, grad in zip(sums[rank], new, strict=True)]
                    if loop.rescale:
                        sums[rank] = [total / counts.every for total in sums[rank]]
                    if loop.clip == "micro-batch":
                        sums[rank] = clipped(sums[rank], case.max_norm)
                if loop.share == "each micro-batch":
                    sums = [shared(sums, "sum")] * len(parts)
            is_short = len(window) < case.n_accumulate and not (loop.early and window.start == 0)
            if is_short and loop.rest == "leak":
                continue
            if is_short and loop.rest == "drop":
                sums = list(zeros)
                continue
            if loop.clip == "mine":
                sums = [clipped(grads, case.max_norm) for grads in sums]
            if loop.share in ("sum", "average"):
                sums = [shared(sums, loop.share)] * len(parts)
            if loop.clip == "undivided":
                sums = [clipped(grads, case.max_norm) for grads in sums]
            totals = [Counts(n, n, *of_window) for n in of_rank]
            sums = [[grad / loop.afterwards(n) for grad in grads] for grads, n in zip(sums, totals, strict=True)]
            if loop.clip == "window":
                sums = [clipped(grads, case.max_norm) for grads in sums]
            if loop.clip == "each parameter":
                sums = [[clipped([grad], case.max_norm)[0] for grad in grads] for grads in sums]
            if loop.clip == "values":
                sums = [[grad.clamp(-case.max_norm, case.max_norm) for grad in grads] for grads in sums]
            if loop.clear == "before the step":
                sums = list(zeros)
            for rank, grads in enumerate(sums):
                steps[rank].append(flat(grads))
                values[rank] = [
                    value.detach() - LEARNING_RATE * grad for value, grad in zip(values[rank], grads, strict=True)
                ]
            if loop.clear == "after the step":
                sums = list(zeros)
    ranks = zip(steps, values, strict=True)
    return {"ranks": [{"gradients": found, "weights": flat(rank).detach()} for found, rank in ranks]}


def shared(sums: list[list[Tensor]], how: str) -> list[Tensor]:
    """Each parameter's gradient, summed over the ranks."""
    n = len(sums) if how == "average" else 1
    return [sum(grads) / n for grads in zip(*sums, strict=True)]


def flat(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])
