"""Lab 19: what is asked, given and run for causal attention whose keys and values travel around a ring of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab14.send_guard import SendGuard
from labkit.spec import Answer, Case, Exercise, Run

SOME = 64
GUARDED_BYTES = 2**16
"""Below it a block is too small for a budget on memory, and changes of what is being sent are looked for."""


@dataclass(frozen=True)
class Ring(Case):
    """length positions of a text on each rank, dealt in zigzag; by_chance: in any order, with uneven work.

    forward_only: no backward pass, and of the output only some numbers of each row come back.
    """

    n_ranks: int
    length: int = 6
    n_heads: int = 2
    d: int = 4
    by_chance: bool = False
    forward_only: bool = False

    @property
    def block_bytes(self) -> int:
        """Of a rank's keys and values together, float32."""
        return 2 * 4 * self.n_heads * self.length * self.d


def ring_inputs(case: Ring, gen: torch.Generator) -> dict[str, Any]:
    """positions: (n_ranks, length), for all; each rank's q, k, v and gradient of the output, (heads, length, d)."""
    n_tokens = case.n_ranks * case.length
    if case.by_chance:
        positions = torch.randperm(n_tokens, generator=gen).view(case.n_ranks, case.length)
    else:
        chunks = torch.arange(n_tokens).view(2, case.n_ranks, -1)
        positions = torch.cat([chunks[0], chunks[1].flip(0)], 1)

    def draw() -> Tensor:
        return torch.randn(case.n_heads, case.length, case.d, generator=gen)

    return {
        "positions": positions,
        "ranks": [{name: draw() for name in ("q", "k", "v", "d_out")} for _ in range(case.n_ranks)],
    }


def some(out: Tensor) -> Tensor:
    """What comes back of an output that is large."""
    return out[..., ::SOME].clone()


def drive_ring(ans, case: Ring, tree: dict, stage) -> dict[str, Any]:
    """out and lse, and what a backward pass behind them makes of q, k and v."""
    q, k, v, d_out = (tree["mine"][name].to(stage.device) for name in ("q", "k", "v", "d_out"))
    positions = tree["positions"].to(stage.device)
    # The guard keeps copies of what is sent.
    comm = SendGuard(stage.comm) if case.block_bytes < GUARDED_BYTES else stage.comm
    with stage.meter("memory"):
        out, lse = ans.ring_forward(comm, q, k, v, positions)
        if case.forward_only:
            return {"out": some(out), "lse": lse}
        d_q, d_k, d_v = ans.ring_backward(comm, q, k, v, positions, out, lse, d_out)
    if isinstance(comm, SendGuard):
        comm.check()
    return {"out": out, "lse": lse, "d_q": d_q, "d_k": d_k, "d_v": d_v}


RING_ATTENTION = Exercise(
    id="19-ring-attention",
    title="Attention around a ring",
    points=6,
    minutes=60,
    difficulty=3,
    answers=(Answer("ring_forward"), Answer("ring_backward")),
    public=(
        Ring(3),
        Ring(4, length=8),
        Ring(2, length=4, d=3),
        Ring(5, length=4, by_chance=True),
        Ring(8, length=32, n_heads=8, d=128, forward_only=True),
        Ring(8, length=32, n_heads=8, d=128),  # keys and values take most of the memory
    ),
    inputs=ring_inputs,
    drive=drive_ring,
    run=Run(ranks=lambda case: case.n_ranks, wall_s=30.0),
    meters=("memory",),
)
