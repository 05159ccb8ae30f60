"""Lab 19: attention of some queries to some keys, its backward pass, and tokens for a router.

The ring with its sums and who gets a place are the students'.

Shapes: q (heads, length, d), k and v (heads, keys, d), positions (length,) and (keys,) of int64 in the whole text. A
query sees the keys at its own position and before it. lse: the logarithm of the sum of a query's exponentials,
(heads, length); -inf where it sees no key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab19.exchange import Exchange
from labkit.exercises.lab19.ulysses import NAMES, Trade, causal_attention, trade_inputs
from labkit.ranks import Comm, Traffic, measure_ranks

Text = dict[str, Any]


def scores(q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """Scaled by the root of d, -inf where the key is not visible: (heads, length, keys)."""
    found = q @ k.mT * q.shape[-1] ** -0.5
    return found.masked_fill_(k_positions > q_positions[:, None], -torch.inf)


def attend(q: Tensor, k: Tensor, v: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
    """(out, lse) of causal attention to these keys alone; a query that sees none of them has the output 0."""
    found = scores(q, k, q_positions, k_positions)
    lse = found.logsumexp(-1)
    return (found - lse.nan_to_num(neginf=0.0)[..., None]).exp_() @ v, lse


def attend_backward(
    q: Tensor, k: Tensor, v: Tensor, q_positions: Tensor, k_positions: Tensor, out: Tensor, lse: Tensor, d_out: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What these keys add to the gradient of q, and the gradients of k and v from these queries.

    out, lse: of these queries over *all* keys of the text; d_out: the gradient of out. (Tri Dao and others,
    FlashAttention, 2022, algorithm 4.)
    """
    share = (scores(q, k, q_positions, k_positions) - lse[..., None]).exp_()
    d_v = share.mT @ d_out
    d_scores = share * (d_out @ v.mT - (d_out * out).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
    return d_scores @ k, d_scores.mT @ q, d_v


def one_text(n_ranks: int, length: int, n_heads: int, d: int) -> Text:
    """q, k, v and d_out of each rank, (n_ranks, heads, length, d), and positions in contiguous blocks."""
    gen = torch.Generator().manual_seed(19)
    shape = (n_ranks, n_heads, length, d)
    drawn = {name: torch.randn(shape, generator=gen) for name in ("q", "k", "v", "d_out")}
    return {"positions": torch.arange(n_ranks * length).view(n_ranks, length), **drawn}


def ring_pass(comm: Comm, text: Text, forward: Callable, backward: Callable) -> None:
    """A forward and a backward pass of a rank's part of the text by the student's functions."""
    q, k, v, d_out = (text[name][comm.rank] for name in ("q", "k", "v", "d_out"))
    out, lse = forward(comm, q, k, v, text["positions"])
    backward(comm, q, k, v, text["positions"], out, lse, d_out)


def ring_error(comm: Comm, text: Text, forward: Callable) -> float:
    """How far the rank's outputs are from attention to the whole text at once, at most."""
    at = text["positions"]
    q, k, v = (text[name].transpose(0, 1).flatten(1, 2) for name in ("q", "k", "v"))
    right, _ = attend(q, k, v, at.flatten(), at.flatten())
    mine = text["q"][comm.rank], text["k"][comm.rank], text["v"][comm.rank]
    out, _ = forward(comm, *mine, at)
    return float((out - right.chunk(comm.world_size, 1)[comm.rank]).abs().max())


def trade_blocks(ulysses: Callable[..., Tensor], n_ranks: int, n_heads: int, n_kv_heads: int) -> float:
    """What a rank sends in a forward and a backward pass, in units of its keys and values together."""
    case = Trade(n_ranks, n_heads, n_kv_heads, length=8, d=16)
    tree = trade_inputs(case, torch.Generator().manual_seed(19))
    _, traffic = measure_ranks(lambda comm: trade_pass(comm, tree["ranks"][comm.rank], ulysses), n_ranks)
    return max(traffic.bytes_sent) / (2 * 4 * n_kv_heads * case.length * case.d)


def trade_pass(comm: Comm, mine: dict[str, Tensor], ulysses: Callable[..., Tensor]) -> list[Tensor]:
    """A rank's output and the gradients of its q, k and v, by the student's function."""
    leaves = [mine[name].clone().requires_grad_() for name in NAMES]
    out = ulysses(comm, *leaves, causal_attention)
    out.backward(mine["d_out"])
    return [out.detach(), *(leaf.grad for leaf in leaves)]


def trade_error(comm: Comm, ulysses: Callable[..., Tensor]) -> float:
    """How far a rank's output and gradients are from attention to the whole text in one process, at most."""
    case = Trade(comm.world_size, 2 * comm.world_size, comm.world_size, length=16, d=8)
    ranks = trade_inputs(case, torch.Generator().manual_seed(19))["ranks"]
    leaves = [torch.cat([one[name] for one in ranks], 1).requires_grad_() for name in NAMES]
    out = causal_attention(*leaves)
    out.backward(torch.cat([one["d_out"] for one in ranks], 1))
    whole = [out.detach(), *(leaf.grad for leaf in leaves)]
    mine = trade_pass(comm, ranks[comm.rank], ulysses)
    right = (one.chunk(comm.world_size, 1)[comm.rank] for one in whole)
    return max(float((a - b).abs().max()) for a, b in zip(mine, right, strict=True))


def router_logits(shared: float, n_tokens: int = 4096, n_experts: int = 8, width: int = 64) -> Tensor:
    """A random router's scores of tokens: independent ones, and one direction `shared` times as long in all of them."""
    gen = torch.Generator().manual_seed(19)
    tokens = torch.randn(n_tokens, width, generator=gen)
    tokens += shared * torch.randn(width, generator=gen)
    return tokens @ torch.randn(width, n_experts, generator=gen) * width**-0.5


def expert_counts(shared: float) -> list[int]:
    """How many tokens of `router_logits` have each expert as their best."""
    logits = router_logits(shared)
    return logits.argmax(-1).bincount(minlength=logits.shape[1]).tolist()


def moe_traffic(
    layer: Callable[..., Tensor], shared: float, n_ranks: int = 4, n_local: int = 2
) -> tuple[list[int], Traffic]:
    """Rows that each rank's experts work on, and what the student's layer sends, in a forward pass of 256 tokens a
    rank, each to its best expert."""
    chosen = router_logits(shared, 256 * n_ranks, n_ranks * n_local).topk(1).indices.chunk(n_ranks)

    def rank(comm: Comm) -> int:
        n_rows = 0

        def run_expert(expert: int, rows: Tensor) -> Tensor:
            nonlocal n_rows
            n_rows += len(rows)
            return rows

        with torch.no_grad():
            tokens, weights = torch.ones(256, 64), torch.ones(256, 1)
            layer(comm, Exchange(comm), tokens, chosen[comm.rank], weights, run_expert, n_local)
        return n_rows

    return measure_ranks(rank, n_ranks)
