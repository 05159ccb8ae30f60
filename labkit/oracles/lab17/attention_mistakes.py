"""Lab 17: the mistakes in how ranks put attention's heads together, played on all ranks' parts in one process.

It does not judge an answer: tp_attention.py compares what comes of each mistake with what the answer gave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab17.layers import shape_of, some
from labkit.exercises.lab17.tp_attention import NAMES, Heads, draw_micro_batches, draw_weights
from labkit.oracles.hints import once
from labkit.oracles.lab17.ranks import Found
from labkit.spec import CaseRun

KV = ("w_k", "w_v")


def attention(
    case: Heads,
    x: Tensor,
    weights: tuple[Tensor, ...],
    is_causal: bool = True,
    in_turn: bool = False,
    is_scaled: bool = True,
    scaled_by: int = 0,
    layout: str = "",
) -> Tensor:
    """One process's attention, or a rank's term of it where the weights are a rank's parts.

    in_turn: a mistake, query head j uses key head j modulo their number. scaled_by: another number than head_dim whose
    root divides the scores. layout: heads are "viewed" as the dimension before the tokens, where they come after them,
    or are "not put back" there, or "both".
    """

    def heads(of: Tensor) -> Tensor:
        if layout in ("viewed", "both"):
            return of.reshape(*of.shape[:1], -1, of.shape[1], case.head_dim)
        return of.unflatten(-1, (-1, case.head_dim)).transpose(1, 2)

    q, k, v = (heads(F.linear(x, one)) for one in weights[:3])
    if in_turn:
        k, v = (one.repeat(1, q.shape[1] // one.shape[1], 1, 1) for one in (k, v))
    scale = scaled_by**-0.5 if scaled_by else None if is_scaled else 1.0
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=True, scale=scale)
    columns = (
        mixed.reshape(*x.shape[:2], -1) if layout in ("not put back", "both") else mixed.transpose(1, 2).flatten(2)
    )
    return F.linear(columns, weights[3])


def own_kv(case: Heads, rank: int) -> int:
    """The first of the key and value heads that a rank holds."""
    return rank * case.n_kv_heads // case.n_ranks


def rows_of(case: Heads, name: str, whole: Tensor, rank: int, kv: Callable[[Heads, int], int] = own_kv) -> Tensor:
    """A rank's part. kv: the first key and value head that it takes."""
    n = case.n_heads // case.n_ranks * case.head_dim
    if name == "w_q":
        return whole[rank * n : (rank + 1) * n]
    if name == "w_o":
        return whole[:, rank * n : (rank + 1) * n]
    n, first = case.kv_heads_of_rank * case.head_dim, kv(case, rank) * case.head_dim
    return whole[first : first + n]


def summed_over_replicas(grads: list[Tensor], case: Heads, rank: int) -> Tensor:
    first = rank - rank % case.n_replicas
    return torch.stack(grads[first : first + case.n_replicas]).sum(0)


@dataclass(frozen=True)
class Slip:
    """A mistake in how the ranks' terms are put together.

    back_factor: whether the output's gradient is summed over the ranks. kv: which key and value heads a rank takes.
    kv_grads: (gradients by rank, case, rank) -> what it has of them; kv_again: of what has added up so far. summed:
    which of the two are summed at all.
    """

    is_causal: bool = True
    is_scaled: bool = True
    scaled_by_hidden: bool = False
    layout: str = ""
    in_turn: bool = False
    back_summed: bool = False
    own_sum: bool = False
    own_x: bool = False
    kv: Callable[[Heads, int], int] = own_kv
    kv_grads: Callable[[list[Tensor], Heads, int], Tensor] = summed_over_replicas
    kv_again: bool = False
    summed: tuple[str, ...] = KV


@once
def result(run: CaseRun[Heads], slip: Slip) -> list[Found]:
    """By rank, what comes of parts that a mistake puts together."""
    case, n = run.case, run.case.n_ranks
    whole = dict(zip(NAMES, draw_weights(case, run.tree["seed"]), strict=True))
    parts = [
        {name: rows_of(case, name, one, rank, slip.kv).clone().requires_grad_() for name, one in whole.items()}
        for rank in range(n)
    ]
    total = [{name: torch.zeros_like(one) for name, one in mine.items()} for mine in parts]
    found: list[Found] = [{"y": [], "x": []} for _ in range(n)]
    for x, grad in draw_micro_batches(case, run.tree["seed"]):
        terms, xs, grads = [], [], []
        for mine in parts:
            here = x.clone().requires_grad_()
            scaled_by = case.hidden if slip.scaled_by_hidden else 0
            how = (slip.is_causal, slip.in_turn, slip.is_scaled, scaled_by, slip.layout)
            term = attention(case, here, tuple(mine.values()), *how)
            factor = n if slip.back_summed else 1
            here_grad, *own = torch.autograd.grad(term, [here, *mine.values()], grad * factor)
            terms.append(term.detach())
            xs.append(here_grad)
            grads.append(dict(zip(NAMES, own, strict=True)))
        for rank in range(n):
            for name in NAMES:
                if name not in KV:
                    total[rank][name] += grads[rank][name]
        for name in KV:
            so_far = [total[rank][name] + grads[rank][name] for rank in range(n)]
            added = so_far if slip.kv_again else [one[name] for one in grads]
            for rank in range(n):
                put = slip.kv_grads(added, case, rank) if name in slip.summed else added[rank]
                total[rank][name] = put if slip.kv_again else total[rank][name] + put
        for rank, one in enumerate(found):
            one["y"].append(terms[rank] if slip.own_sum else torch.stack(terms).sum(0))
            x_grad = xs[rank] if slip.own_x else torch.stack(xs).sum(0)
            one["x"].append(x_grad if case.trains_input else None)
    return [
        one
        | {"shapes": {name: shape_of(part) for name, part in mine.items()}}
        | {"grads": {name: some(grad) for name, grad in sums.items()}}
        for one, mine, sums in zip(found, parts, total, strict=True)
    ]


def of_one_rank(grads: list[Tensor], case: Heads, rank: int) -> Tensor:
    return grads[rank]


def over_all_ranks(grads: list[Tensor], case: Heads, rank: int) -> Tensor:
    return torch.stack(grads).sum(0)


def over_every_so_many(grads: list[Tensor], case: Heads, rank: int) -> Tensor:
    """Over ranks that lie as far apart as there are heads, and so hold different ones."""
    step = min(case.n_kv_heads, case.n_ranks)
    return torch.stack(grads[rank % step :: step]).sum(0) if case.n_replicas > 1 else grads[rank]


def over_the_same_in_turn(grads: list[Tensor], case: Heads, rank: int) -> Tensor:
    """As heads are dealt by `dealt_in_turn`."""
    same = [one for other, one in enumerate(grads) if dealt_in_turn(case, other) == dealt_in_turn(case, rank)]
    return torch.stack(same).sum(0)


def averaged(grads: list[Tensor], case: Heads, rank: int) -> Tensor:
    return summed_over_replicas(grads, case, rank) / case.n_replicas


def dealt_in_turn(case: Heads, rank: int) -> int:
    """Head 0 to rank 0, head 1 to rank 1, and again from head 0: right with as many heads as ranks or more."""
    return rank % case.n_kv_heads if case.n_kv_heads < case.n_ranks else own_kv(case, rank)
