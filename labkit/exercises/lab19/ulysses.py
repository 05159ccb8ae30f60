"""Lab 19: what is asked, given and run for attention whose ranks trade their part of the text for some heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.spec import Answer, Case, Exercise, Run

NAMES = ("q", "k", "v")


@dataclass(frozen=True)
class Trade(Case):
    """length tokens on each rank, in contiguous parts of the text. tensor: over so many ranks tensor parallelism has
    cut the heads before; what is left of them is dealt here. forward_only: no backward pass."""

    n_ranks: int
    n_heads: int
    n_kv_heads: int
    length: int = 3
    d: int = 4
    tensor: int = 1
    forward_only: bool = False

    @property
    def heads(self) -> int:
        """Of queries, before they are dealt."""
        return self.n_heads // self.tensor

    @property
    def kv_heads(self) -> int:
        return self.n_kv_heads // self.tensor

    @property
    def is_refused(self) -> bool:
        return self.heads % self.n_ranks > 0 or self.kv_heads % self.n_ranks > 0


def trade_inputs(case: Trade, gen: torch.Generator) -> dict[str, Any]:
    """Of each rank q, k, v and the gradient of the output, (heads, length, d)."""

    def draw(heads: int) -> Tensor:
        return torch.randn(heads, case.length, case.d, generator=gen)

    sizes = {"q": case.heads, "k": case.kv_heads, "v": case.kv_heads, "d_out": case.heads}
    return {"ranks": [{name: draw(heads) for name, heads in sizes.items()} for _ in range(case.n_ranks)]}


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Of q (heads, tokens, d) to k and v (kv_heads, tokens, d), a text from its start: head h of q belongs to head
    h // (heads / kv_heads) of k and v."""
    if q.dim() != 3 or k.shape != v.shape or q.shape[1:] != k.shape[1:] or q.shape[0] % k.shape[0]:
        shapes = ", ".join(f"{name} {tuple(one.shape)}" for name, one in zip(NAMES, (q, k, v)))
        raise TypeError(
            f"attention was called with {shapes}: each is (heads, tokens, d), with the same tokens in all of them"
        )
    n = q.shape[0] // k.shape[0]
    k, v = k.repeat_interleave(n, 0), v.repeat_interleave(n, 0)
    hidden = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).triu(1)
    return (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hidden, -torch.inf).softmax(-1) @ v


def drive_trade(ans, case: Trade, tree: dict, stage) -> dict[str, Any]:
    """The output and the gradients of q, k and v, None where autograd knows of none; or what was raised."""
    mine = tree["mine"]
    leaves = [mine[name].clone().to(stage.device).requires_grad_() for name in NAMES]
    if case.is_refused:
        try:
            ans.ulysses(stage.comm, *leaves, causal_attention)
        except NotImplementedError:  # a blank stub
            raise
        except Exception as error:
            return {"refused": type(error).__name__}
        return {"refused": "nothing"}
    out = ans.ulysses(stage.comm, *leaves, causal_attention)
    if not isinstance(out, Tensor):
        return {"out": out}
    if case.forward_only:
        return {"out": out.detach()}
    if out.shape == mine["d_out"].shape and out.requires_grad:
        out.backward(mine["d_out"].to(stage.device))
    d_q, d_k, d_v = (leaf.grad for leaf in leaves)
    return {"out": out.detach(), "d_q": d_q, "d_k": d_k, "d_v": d_v}


ULYSSES = Exercise(
    id="19-ulysses",
    title="Heads for sequence",
    points=1,
    optional=True,
    minutes=35,
    difficulty=2,
    answers=(Answer("ulysses"),),
    public=(
        Trade(3, 6, 3),
        Trade(4, 8, 4, length=2, forward_only=True),
        Trade(2, 8, 4, length=5, d=3),
        Trade(3, 9, 9, length=4),
        Trade(4, 6, 6),
        Trade(4, 8, 2),
        Trade(4, 32, 8, tensor=4),
    ),
    inputs=trade_inputs,
    drive=drive_trade,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=20.0),
)
