"""Lab 16: when a sharded model computes and when it sends, on simulated ranks with a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from labkit.ranks import Cluster, Comm, Wire, measure_ranks

Span = tuple[str, float, float]
"""What, from when and until when on the virtual clock, in seconds."""
WIDTH = 120


@dataclass(frozen=True)
class UnitSpans:
    """One step of rank 0: when it computed ("forward", "backward"), and when it sent ("all_gather", "reduce_scatter").

    whole: (seconds, units whose gathered weights were there from then on).

        UnitSpans((("forward", 0.006, 0.016),), (("all_gather", 0.0, 0.006),), 0.016, ((0.0, 1), (0.016, 0)))
    """

    compute: tuple[Span, ...]
    network: tuple[Span, ...]
    step_s: float
    whole: tuple[tuple[float, int], ...] = ()


class _Gathers:
    """A rank's communicator that notes what was gathered, and for how long it was there.

    It looks whenever time may have gone by: before and after each pass, and before each call.
    """

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._gathered: list[StorageWeakRef] = []
        self.whole: list[tuple[float, int]] = []

    def __getattr__(self, name: str) -> Any:
        self.look()
        return getattr(self._comm, name)

    def look(self) -> None:
        """Count what is still there. What has gone since the last look went at once, when nothing ran."""
        there = sum(not one.expired() for one in self._gathered)
        if there != (self.whole[-1][1] if self.whole else 0):
            self.whole.append((self._comm.now_s, there))

    def compute(self, seconds: float) -> None:
        self.look()
        self._comm.compute(seconds)
        self.look()

    def all_gather_single(self, output: Tensor, input: Tensor, async_op: bool = False) -> Any:
        self._gathered.append(StorageWeakRef(output.untyped_storage()))
        self.look()
        return self._comm.all_gather_single(output, input, async_op)

    all_gather_into_tensor = all_gather_single

    def all_gather(self, tensor_list: Any, tensor: Tensor, async_op: bool = False) -> Any:
        """Parts that are joined afterwards: the first of them stands for the unit."""
        self._gathered.append(StorageWeakRef(tensor_list[0].untyped_storage()))
        self.look()
        return self._comm.all_gather(tensor_list, tensor, async_op)


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

    def rank(comm: Comm) -> list[tuple[float, int]]:
        mine, looked = spans if comm.rank == 0 else [], _Gathers(comm)
        units = [
            sharded(_Unit(looked, mine, forward_s), looked, torch.bfloat16, torch.bfloat16) for _ in range(n_units)
        ]
        x = torch.ones(2, WIDTH, dtype=torch.bfloat16, requires_grad=True)
        for unit in units:
            x = unit(x)
        x.float().sum().backward()
        looked.look()
        return looked.whole

    wholes, traffic = measure_ranks(rank, n_ranks, cluster=cluster)
    return UnitSpans(tuple(spans), _calls(traffic.transfers), traffic.seconds, tuple(wholes[0]))


def _calls(transfers: Any) -> tuple[Span, ...]:
    """Rank 0's messages, those of one call joined where they follow one another."""
    joined: list[Span] = []
    for one in sorted((one for one in transfers if one.src == 0), key=lambda one: one.start_s):
        if joined and joined[-1][0] == one.call and one.start_s - joined[-1][2] < 1e-9:
            joined[-1] = (one.call, joined[-1][1], one.end_s)
        else:
            joined.append((one.call, one.start_s, one.end_s))
    return tuple(joined)
