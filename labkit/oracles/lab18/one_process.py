"""Lab 18: the same training step in one process, and what the gradients are after the usual mistakes.

All stages are here, one after the other, and nothing is sent. The gradient of each micro-batch is kept for itself, so
that mistakes are other sums of the same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab18.model import IGNORED, Stage, make_stage
from labkit.exercises.lab18.pipeline_step import LEARNING_RATE, Steps
from labkit.oracles.hints import once
from labkit.spec import CaseRun

Grads = list[list[Tensor]]
"""By rank, of its parameters in order."""
Weigh = Callable[[Steps, list[int]], list[float]]
"""(case, tokens that count by micro-batch) -> by what each micro-batch's summed loss is multiplied."""
LossOf = Callable[[Tensor, Tensor], Tensor]
"""(logits, targets) of a micro-batch -> the sum of its tokens' losses."""
Tie = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(gradients of the first and of the last stage's use of the embedding) -> what the two stages end with."""


def tokens_of(run: CaseRun[Steps]) -> list[int]:
    """How many tokens of each micro-batch count."""
    return [int((target != IGNORED).sum()) for target in run.tree["ranks"][-1]["targets"]]


def by_token(case: Steps, n_tokens: list[int]) -> list[float]:
    """The right one: the mean over all tokens of the batch."""
    return [1 / sum(n_tokens)] * len(n_tokens)


def both(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """The right one."""
    return first + last, first + last


def _stages(run: CaseRun[Steps]) -> list[Stage]:
    case = run.case
    return [make_stage(case.n_layers, case.width, case.vocab, run.tree["seed"], k) for k in range(case.n_ranks)]


def summed(logits: Tensor, targets: Tensor) -> Tensor:
    """The right one."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")


def _parts(run: CaseRun[Steps], stages: Sequence[Stage], loss_of: LossOf = summed) -> tuple[list[float], list[Grads]]:
    """By micro-batch the summed loss and its gradients, each stage's embedding for itself."""
    tokens, targets = run.tree["ranks"][0]["tokens"], run.tree["ranks"][-1]["targets"]
    losses, parts = [], []
    for ids, target in zip(tokens, targets, strict=True):
        x = ids
        for stage in stages:
            x = stage(x)
        loss = loss_of(x, target)
        found = torch.autograd.grad(loss, [p for stage in stages for p in stage.parameters()])
        losses.append(float(loss.detach()))
        parts.append(by_stage(stages, found))
    return losses, parts


def by_stage(stages: Sequence[Stage], grads: Sequence[Tensor]) -> Grads:
    """A list of all gradients, cut into those of each stage."""
    left = list(grads)
    return [[left.pop(0) for _ in stage.parameters()] for stage in stages]


def place_of_tied(run: CaseRun[Steps], rank: int) -> int:
    """Which parameter of this stage is the embedding."""
    stage = _stages(run)[rank]
    return next(k for k, p in enumerate(stage.parameters()) if p is stage.tied_weight)


@once
def first_parts(run: CaseRun[Steps], loss_of: LossOf = summed) -> tuple[list[float], list[Grads]]:
    """Of the first step."""
    return _parts(run, _stages(run), loss_of)


def add_up(run: CaseRun[Steps], parts: list[Grads], factors: Sequence[float], tie: Tie) -> Grads:
    """The parts times these factors, and the embedding's gradients brought together."""
    sums = [
        [sum(factor * grad for factor, grad in zip(factors, grads)) for grads in zip(*of_rank)]
        for of_rank in zip(*parts)
    ]
    if run.case.n_ranks > 1:
        first, last = place_of_tied(run, 0), place_of_tied(run, run.case.n_ranks - 1)
        sums[0][first], sums[-1][last] = tie(sums[0][first], sums[-1][last])
    return sums


@once
def first_grads(run: CaseRun[Steps], weigh: Weigh = by_token, tie: Tie = both) -> Grads:
    """After the first step."""
    return add_up(run, first_parts(run)[1], weigh(run.case, tokens_of(run)), tie)


@once
def trained(run: CaseRun[Steps]) -> tuple[list[float], Grads]:
    """The loss of each step, and the weights after all of them."""
    stages, losses = _stages(run), []
    factors = by_token(run.case, tokens_of(run))
    for step in range(run.case.n_steps):
        summed, parts = first_parts(run) if step == 0 else _parts(run, stages)
        losses.append(sum(factor * loss for factor, loss in zip(factors, summed)))
        grads = add_up(run, parts, factors, both)
        with torch.no_grad():
            for stage, of_stage in zip(stages, grads, strict=True):
                for parameter, grad in zip(stage.parameters(), of_stage, strict=True):
                    parameter -= LEARNING_RATE * grad
    return losses, [[p.detach() for p in stage.parameters()] for stage in stages]


def names_of(run: CaseRun[Steps], rank: int) -> list[str]:
    """The parameters of a stage, as the student can write them."""
    return [f"stage.{name}" for name, _ in _stages(run)[rank].named_parameters()]
