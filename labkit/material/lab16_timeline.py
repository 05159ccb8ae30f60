"""Lab 16: when a sharded model computes and when it sends, on simulated ranks with a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labkit.ranks import Cluster, Comm, Wire, measure_ranks

Span = tuple[str, float, float]
"""What, from when and until when on the virtual clock, in seconds."""
WIDTH = 120


@dataclass(frozen=True)
class UnitSpans:
    """One step of rank 0: when it computed ("forward", "backward"), and when it sent ("all_gather", "reduce_scatter").

    UnitSpans(compute=(("forward", 0.006, 0.016),), network=(("all_gather", 0.0, 0.006),), step_s=0.016)
    """

    compute: tuple[Span, ...]
    network: tuple[Span, ...]
    step_s: float


class _Timed(torch.autograd.Function):
    """The time of a layer's backward pass, on the rank's clock. It stands before the layer."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, comm: Comm, spans: list[Span], seconds: float) -> Tensor:
        ctx.timing = (comm, spans, "backward", seconds)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _compute(*ctx.timing)
        return grad, None, None, None


def _compute(comm: Comm, spans: list[Span], what: str, seconds: float) -> None:
    start_s = comm.now_s
    comm.compute(seconds)
    spans.append((what, start_s, comm.now_s))


class _Unit(nn.Module):
    """A linear layer that takes time once it has its weights, forward and back."""

    def __init__(self, comm: Comm, spans: list[Span], forward_s: float) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.timing = (comm, spans, forward_s)

    def forward(self, x: Tensor) -> Tensor:
        comm, spans, forward_s = self.timing
        out = self.linear(_Timed.apply(x, comm, spans, 2 * forward_s))
        _compute(comm, spans, "forward", forward_s)
        return out


def unit_timeline(
    sharded: Callable[..., nn.Module], n_units: int, n_ranks: int, forward_s: float = 0.01, gather_s: float = 0.006
) -> UnitSpans:
    """One step of sharded(module, comm, param_dtype, reduce_dtype), in which each unit's gather takes gather_s."""
    spans: list[Span] = []
    n_elements = WIDTH * (WIDTH + 1)
    sent = (n_ranks - 1) * 2 * (-(-n_elements // n_ranks))
    cluster = Cluster(within=Wire(0.0, sent / gather_s))

    def rank(comm: Comm) -> None:
        mine = spans if comm.rank == 0 else []
        units = [sharded(_Unit(comm, mine, forward_s), comm, torch.bfloat16, torch.bfloat16) for _ in range(n_units)]
        x = torch.ones(2, WIDTH, dtype=torch.bfloat16, requires_grad=True)
        for unit in units:
            x = unit(x)
        x.float().sum().backward()

    _, traffic = measure_ranks(rank, n_ranks, cluster=cluster)
    return UnitSpans(tuple(spans), _calls(traffic.transfers), traffic.seconds)


def _calls(transfers: Any) -> tuple[Span, ...]:
    """Rank 0's messages, those of one call joined where they follow one another."""
    joined: list[Span] = []
    for one in sorted((one for one in transfers if one.src == 0), key=lambda one: one.start_s):
        if joined and joined[-1][0] == one.call and one.start_s - joined[-1][2] < 1e-9:
            joined[-1] = (one.call, joined[-1][1], one.end_s)
        else:
            joined.append((one.call, one.start_s, one.end_s))
    return tuple(joined)
