"""Lab 18: what a training step over stages gives after the usual mistakes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab18.model import IGNORED, make_stage
from labkit.exercises.lab18.pipeline_step import Steps
from labkit.oracles.hints import once
from labkit.oracles.lab18.one_process import (
    Grads,
    LossOf,
    Weigh,
    add_up,
    both,
    by_stage,
    by_token,
    first_grads,
    first_parts,
    place_of_tied,
    summed,
    tokens_of,
)
from labkit.spec import CaseRun

Played = Callable[[CaseRun[Steps]], Grads | None]
"""run -> the gradients after a mistake; None where it cannot be told."""


def mean_of_means(case: Steps, n_tokens: list[int]) -> list[float]:
    return [one / len(n_tokens) for one in sum_of_means(case, n_tokens)]


def sum_of_means(case: Steps, n_tokens: list[int]) -> list[float]:
    """Where no token counts, PyTorch's mean is NaN, and its gradient 0."""
    return [1 / n if n else 0.0 for n in n_tokens]


def scaled_twice(case: Steps, n_tokens: list[int]) -> list[float]:
    return [one / len(n_tokens) for one in by_token(case, n_tokens)]


def never_divided(case: Steps, n_tokens: list[int]) -> list[float]:
    return [1.0] * len(n_tokens)


def counts_ignored(case: Steps, n_tokens: list[int]) -> list[float]:
    return [1 / sum(rows * length for rows, length in case.sizes)] * len(n_tokens)


def last_alone(case: Steps, n_tokens: list[int]) -> list[float]:
    """The micro-batch whose backward pass is the last one."""
    _, last = case.order_of(0)[-1]
    return [one * (k == last) for k, one in enumerate(by_token(case, n_tokens))]


def last_forward(case: Steps, n_tokens: list[int]) -> list[float]:
    """The micro-batch whose forward pass is the last one."""
    last = [k for kind, k in case.order_of(0) if kind == "F"][-1]
    return [one * (k == last) for k, one in enumerate(by_token(case, n_tokens))]


def not_tied(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    return first, last


def averaged(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    return (first + last) / 2, (first + last) / 2


def first_alone_has_both(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    return first + last, last


def last_alone_has_both(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    return first, first + last


def with_loss(run: CaseRun[Steps], loss_of: LossOf, weigh: Weigh = by_token) -> Grads:
    """What another loss of each micro-batch leads to."""
    return add_up(run, first_parts(run, loss_of)[1], weigh(run.case, tokens_of(run)), both)


def next_token(logits: Tensor, targets: Tensor) -> Tensor:
    """As if the targets were the tokens themselves: a token's logits are compared with the next target."""
    return summed(logits[:, :-1], targets[:, 1:])


def of_softmax(logits: Tensor, targets: Tensor) -> Tensor:
    return summed(logits.softmax(-1), targets)


@once
def shifted(run: CaseRun[Steps]) -> Grads:
    return with_loss(run, next_token)


@once
def shifted_and_counted(run: CaseRun[Steps]) -> Grads:
    """Divided by the tokens that are left."""
    targets = run.tree["ranks"][-1]["targets"]
    n_left = sum(int((target[:, 1:] != IGNORED).sum()) for target in targets)
    return with_loss(run, next_token, lambda case, n_tokens: [1 / n_left] * len(n_tokens))


@once
def softmaxed(run: CaseRun[Steps]) -> Grads:
    return with_loss(run, of_softmax)


@once
def tied_after_every_micro_batch(run: CaseRun[Steps]) -> Grads | None:
    """After each backward pass both ranks add up all that has been added up so far."""
    case = run.case
    if case.n_ranks == 1 or case.is_large:
        return None
    parts, factors = first_parts(run)[1], by_token(case, tokens_of(run))
    ends = (0, case.n_ranks - 1)
    places = [place_of_tied(run, rank) for rank in ends]
    order = [k for kind, k in case.order_of(0) if kind == "B"]
    a = b = torch.zeros_like(parts[0][0][places[0]])
    for k in order:
        a, b = both(*(total + factors[k] * parts[k][r][at] for total, r, at in zip((a, b), ends, places)))
    grads = [list(of_rank) for of_rank in first_grads(run)]
    grads[0][places[0]], grads[-1][places[1]] = a, b
    return grads


@once
def newest_first(run: CaseRun[Steps]) -> Grads | None:
    """Each backward pass takes the micro-batch that went forward last, and the gradient that the order names."""
    case = run.case
    if case.n_ranks == 1 or case.is_large or len(set(case.sizes)) > 1:
        return None
    last = case.n_ranks - 1
    stages = [make_stage(case.n_layers, case.width, case.vocab, run.tree["seed"], k) for k in range(case.n_ranks)]
    tokens, targets = run.tree["ranks"][0]["tokens"], run.tree["ranks"][-1]["targets"]
    n_tokens = sum(tokens_of(run))
    there: list[list[tuple[Tensor, Tensor]]] = []
    for rank, stage in enumerate(stages):
        ins = tokens if rank == 0 else [out.detach().requires_grad_() for _, out in there[-1]]
        outs = [stage(x) for x in ins]
        if rank == last:
            sums = [F.cross_entropy(y.flatten(0, 1), t.flatten(), reduction="sum") for y, t in zip(outs, targets)]
            outs = [one / n_tokens for one in sums]
        there.append(list(zip(ins, outs)))
    back: list[Tensor | None] = [None] * len(tokens)
    for rank in reversed(range(case.n_ranks)):
        stack, up, number = [], [], 0
        for kind, k in case.order_of(rank):
            if kind == "F":
                stack.append(k)
                continue
            x, out = there[rank][stack.pop()]
            out.backward(back[number])
            up.append(x.grad)
            number += 1
        back = up
    found = [p.grad for stage in stages for p in stage.parameters()]
    return add_up(run, [by_stage(stages, found)], [1.0], both)
