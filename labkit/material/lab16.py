"""Lab 16: what its notebook runs on ranks beside the student's own code. Nothing is judged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.exercises.lab16.optimizers import held_bytes
from labkit.meters import measure_memory
from labkit.ranks import Comm, measure_ranks, run_ranks

WIDTH = 61
"""A prime: it divides into no number of ranks."""


def small_model() -> nn.Sequential:
    """Three layers of 61 columns, 11,346 parameters."""
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH)
    )


def batch_of(rank: int, step: int) -> tuple[Tensor, Tensor]:
    """A rank's rows in a step, and what the model should make of them."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(16, WIDTH, generator=generator)
    return x, x.roll(1, 1)


def copies_on_ranks(comm: Comm) -> dict[str, tuple[int, str]]:
    """By part, what this rank holds after three steps of data parallel training: its bytes, and a hash of its bits."""
    torch.manual_seed(0)
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(3):
        x, y = batch_of(comm.rank, step)
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        for parameter in model.parameters():
            comm.all_reduce(parameter.grad, op="avg")
        optimizer.step()
    moments = [value for state in optimizer.state.values() for value in state.values() if value.dim()]
    return {
        "weights": _hashed(parameter.detach() for parameter in model.parameters()),
        "gradients": _hashed(parameter.grad for parameter in model.parameters()),
        "moments": _hashed(moments),
    }


def _hashed(tensors: Iterable[Tensor]) -> tuple[int, str]:
    parts = [tensor.contiguous().numpy().tobytes() for tensor in tensors]
    return sum(map(len, parts)), hashlib.sha256(b"".join(parts)).hexdigest()[:8]


class AllReduced:
    """Data parallel training as an optimizer: averages each gradient by an all-reduce, and updates everything."""

    def __init__(self, params: Sequence[Tensor], comm: Comm, make_optimizer: Callable) -> None:
        self.params, self.comm = list(params), comm
        self.optimizer = make_optimizer(self.params)

    def step(self) -> None:
        flat = torch.cat([p.grad.flatten() for p in self.params])
        self.comm.all_reduce(flat, op="avg")
        for p, mean in zip(self.params, flat.split([p.numel() for p in self.params])):
            p.grad = mean.view_as(p)
        self.optimizer.step()


@dataclass(frozen=True)
class Trained:
    """What training on several ranks took: the most bytes that a rank sent and held, and the mean loss at the end.

    Trained(sent=204_228, weights=45_384, gradients=45_384, states=90_768, loss=1.05)
    """

    sent: int
    weights: int
    gradients: int
    states: int
    loss: float


def three_steps(way: Callable[..., Any], n_ranks: int, n_micro: int = 1, backend: str = "gloo") -> Trained:
    """Train the small model for three steps with `way(params, comm, make_optimizer)` and its step()."""
    ranks, traffic = measure_ranks(partial(_three_steps, way=way, n_micro=n_micro), n_ranks, backend)
    weights, gradients, states, losses = zip(*ranks, strict=True)
    return Trained(max(traffic.bytes_sent), max(weights), max(gradients), max(states), sum(losses) / n_ranks)


def _three_steps(comm: Comm, way: Callable[..., Any], n_micro: int) -> tuple[int, int, int, float]:
    """Of one rank: bytes of weights, of gradients before the update, of optimizer states; its own loss."""
    torch.manual_seed(0)
    model = small_model()
    made: list[torch.optim.Optimizer] = []

    def make_optimizer(params: Sequence[Tensor]) -> torch.optim.Optimizer:
        made.append(torch.optim.AdamW(params, lr=1e-3))
        return made[-1]

    optimizer = way(model.parameters(), comm, make_optimizer)
    params, gradients = list(model.parameters()), 0
    for step in range(3):
        for micro in range(n_micro):
            x, y = batch_of(comm.rank, 100 * micro + step)
            loss = F.mse_loss(model(x), y)
            (loss / n_micro).backward()
        owned = [p for one in made for group in one.param_groups for p in group["params"]]
        gradients = held_bytes(p.grad for p in [*params, *owned])
        optimizer.step()
        for p in params:
            p.grad = None
    states = [value for one in made for state in one.state.values() for value in state.values()]
    return held_bytes(p.detach() for p in params), gradients, held_bytes(states), loss.item()


def norm_after(clip: Callable[..., Tensor], n_ranks: int) -> float:
    """The norm of the whole gradient after clip(comm, sharded, replicated, 1.0), on simulated ranks of a shard each."""

    def rank(comm: Comm) -> float:
        shard = torch.zeros(WIDTH, requires_grad=True)
        generator = torch.Generator().manual_seed(comm.rank)
        shard.grad = F.normalize(torch.randn(WIDTH, generator=generator), dim=0) * 3
        clip(comm, [shard], [], 1.0)
        return float(shard.grad.square().sum())

    return sum(run_ranks(rank, n_ranks)) ** 0.5


def held_between_layers(function: type[torch.autograd.Function], n_layers: int, n_ranks: int) -> dict[str, list[int]]:
    """Bytes that a rank holds after each layer, forward and back: with `function`, and where gathered weights are kept.

    function: as ShardedLinear. On simulated ranks, with layers of 1 MB.
    """
    ways = {"yours": function.apply, "kept whole": _kept_whole}
    return {name: _held(way, n_layers, n_ranks) for name, way in ways.items()}


def _held(linear: Callable[..., Tensor], n_layers: int, n_ranks: int) -> list[int]:
    width = 500

    def rank(comm: Comm) -> None:
        with measure_memory({}, {}):
            shards = [torch.full((width * width // n_ranks,), 0.01, requires_grad=True) for _ in range(n_layers)]
            x = torch.ones(2, width)
            for number, shard in enumerate(shards, 1):
                x = linear(x, shard, comm, width, width)
                comm.mark(f"forward {number}")
                x.register_hook(lambda _, number=number: comm.mark(f"backward {number}"))
            x.sum().backward()
            comm.mark("backward 0")

    return [max(moment.held_bytes) for moment in measure_ranks(rank, n_ranks)[1].moments]


def _kept_whole(x: Tensor, shard: Tensor, comm: Comm, n_out: int, n_in: int) -> Tensor:
    """What autograd does with a weight that is gathered before it is used."""
    return F.linear(x, _Gathered.apply(shard, comm).view(n_out, n_in))


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, shard: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        whole = torch.empty(comm.world_size * len(shard))
        comm.all_gather_single(whole, shard)
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        part = torch.empty(len(grad) // ctx.comm.world_size)
        ctx.comm.reduce_scatter_single(part, grad.contiguous(), op="avg")
        return part, None
