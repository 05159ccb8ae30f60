"""Lab 15: what is asked, given and run for data parallel training with buckets that travel during the backward pass."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.meters import track_comm
from labkit.ranks import Cluster, Comm, Wire
from labkit.spec import Answer, Case, Exercise, Run

LEARNING_RATE = 0.5
N_TOKENS = 12
BLOCK_S = 10e-3
"""What the backward pass of one block takes on the virtual clock."""
REST_S = 60e-3
"""What the backward pass takes between the first layers of a network and its inputs, where they are crossed."""
SHARE = 0.7
"""The all-reduce of one block's gradients takes this part of the block's backward pass."""
ALPHA_S = 0.1e-3


@dataclass(frozen=True)
class Job(Case):
    """n_steps of a network of n_blocks blocks, on n_rows rows a rank and step.

    cap_blocks: a bucket closes on reaching so many blocks' gradients.
    odd_ranks_skip: the odd ranks leave this block out. odd_ranks_swap: two more layers behind the blocks, which the odd
    ranks call in the other order. n_crossed: so many more layers before the blocks, which the odd ranks call in the
    other order.
    """

    n_ranks: int = 2
    n_blocks: int = 6
    width: int = 16
    n_rows: int = 4
    cap_blocks: float = 1.0
    max_norm: float = 100.0
    n_steps: int = 2
    odd_ranks_skip: int | None = None
    odd_ranks_swap: bool = False
    n_crossed: int = 0

    @property
    def block_bytes(self) -> int:
        """Gradients of one block: a square weight and a bias in float32."""
        return 4 * self.width * (self.width + 1)

    @property
    def cap_bytes(self) -> int:
        return int(self.cap_blocks * self.block_bytes)

    @property
    def backward_s(self) -> float:
        """What a backward pass takes on the virtual clock."""
        return BLOCK_S * (self.n_blocks + self.odd_ranks_swap) + REST_S * (self.n_crossed > 0)


def cluster_of(case: Job) -> Cluster:
    """One node, on which the all-reduce of a block's gradients takes SHARE of the block's backward pass."""
    hops = 2 * max(case.n_ranks - 1, 1)
    wire_s = SHARE * BLOCK_S - hops * ALPHA_S
    return Cluster(within=Wire(ALPHA_S, hops / case.n_ranks * case.block_bytes / wire_s))


class _Takes(torch.autograd.Function):
    """The identity, whose backward pass takes time on the virtual clock."""

    @staticmethod
    def forward(ctx, x: Tensor, comm: Comm | None, seconds: float) -> Tensor:
        ctx.comm, ctx.seconds = comm, seconds
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        if ctx.comm is not None:
            ctx.comm.compute(ctx.seconds)
        return grad, None, None


class Net(nn.Module):
    """Tokens in, logits out. The output layer shares its weight with the embedding; `never` is called by nobody. One of
    the buffers is a whole number, as in batch normalization, and one is in no state_dict()."""

    def __init__(self, case: Job, rank: int, comm: Comm | None = None) -> None:
        super().__init__()
        self.case, self.rank, self.comm = case, rank, comm
        width = case.width
        self.never = nn.Linear(3, 3)
        self.embedding = nn.Embedding(N_TOKENS, width)
        self.crossed = nn.ModuleList(nn.Linear(width, width) for _ in range(case.n_crossed))
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(case.n_blocks))
        if case.odd_ranks_swap:
            self.left, self.right = (nn.Linear(width, width) for _ in range(2))
        self.head = nn.Linear(width, N_TOKENS, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("temperature", torch.ones(1))
        self.register_buffer("n_seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("gain", torch.ones(1), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        if self.case.n_crossed:
            h = self._in_other_order(list(self.crossed), _Takes.apply(h, self.comm, REST_S))
        for number, block in enumerate(self.blocks):
            if number != self.case.odd_ranks_skip or self.rank % 2 == 0:
                h = h + torch.tanh(_Takes.apply(block(h), self.comm, BLOCK_S))
        if self.case.odd_ranks_swap:
            h = self._in_other_order([self.left, self.right], _Takes.apply(h, self.comm, BLOCK_S))
        return self.gain * self.head(h) / self.temperature

    def _in_other_order(self, layers: list[nn.Module], base: Tensor) -> Tensor:
        """Layers beside one another, called in the other order on odd ranks: called last, first in the backward."""
        h = base
        for layer in layers if self.rank % 2 == 0 else layers[::-1]:
            h = h + torch.tanh(layer(base))
        return h


def build(case: Job, mine: dict[str, Any], rank: int, comm: Comm | None = None) -> Net:
    """The network as a rank has it at the start, before anybody has spoken."""
    net = Net(case, rank, comm)
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), mine["parameters"], strict=True):
            parameter.copy_(value)
        net.temperature.copy_(mine["temperature"])
        net.n_seen.copy_(mine["n_seen"])
        net.gain.copy_(mine["gain"])
    return net


def job_inputs(case: Job, gen: torch.Generator) -> dict[str, Any]:
    """For each rank: parameters and three buffers of its own, tokens and targets (n_steps, n_rows)."""
    shapes = [parameter.shape for parameter in Net(case, 0).parameters()]

    def part() -> dict[str, Any]:
        def labels() -> Tensor:
            return torch.randint(N_TOKENS, (case.n_steps, case.n_rows), generator=gen)

        return {
            "parameters": [torch.randn(shape, generator=gen) * case.width**-0.5 for shape in shapes],
            "temperature": 0.5 + torch.rand(1, generator=gen),
            "n_seen": torch.randint(1000, (), generator=gen),
            "tokens": labels(),
            "targets": labels(),
            "gain": 0.5 + torch.rand(1, generator=gen),
        }

    return {"ranks": [part() for _ in range(case.n_ranks)]}


class BucketCount:
    """`comm`, which counts the tensors that were given to all_reduce and are still held by somebody."""

    def __init__(self, comm: Comm) -> None:
        self._comm, self._given = comm, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def all_reduce(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Start or do an all-reduce, as the communicator does."""
        self._given.append(weakref.ref(tensor))
        return self._comm.all_reduce(tensor, *args, **kwargs)

    def n_held(self, few: int) -> int:
        """How many of them there are. What a cycle of references keeps is let go of first, if there are not so few."""
        if self._n_alive() > few:
            gc.collect()
        return self._n_alive()

    def _n_alive(self) -> int:
        return len({id(tensor) for one in self._given if (tensor := one()) is not None})


def drive_ddp(ans, case: Job, tree: dict, stage) -> dict[str, Any]:
    """parameters and buffers at the end; without_grad: the names of parameters that the optimizer stepped over; left:
    of those with a gradient after a step; n_held: buckets that are still held at the end. calls: the all-reduces as
    this rank made them, for hints.
    """
    mine = tree["mine"]
    net = build(case, mine, stage.rank, stage.comm).to(stage.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
    without_grad: set[str] = set()
    left: set[str] = set()
    optimizer.register_step_pre_hook(
        lambda *_: without_grad.update(name for name, one in net.named_parameters() if one.grad is None)
    )
    comm = BucketCount(stage.comm)
    with track_comm() as log:
        ddp = ans.DDP(net, comm, case.cap_bytes)
        for tokens, targets in zip(mine["tokens"].to(stage.device), mine["targets"].to(stage.device)):
            ans.train_step(ddp, optimizer, F.cross_entropy(ddp(tokens), targets), case.max_norm)
            left.update(name for name, one in net.named_parameters() if one.grad is not None and one.grad.any())
    reduces = [call for call in log.calls if call.name == "all_reduce"]
    return {
        "parameters": [parameter.detach().clone() for parameter in net.parameters()],
        **{name: buffer.clone() for name, buffer in net.named_buffers()},
        "without_grad": sorted(without_grad),
        "left": sorted(left),
        "n_held": comm.n_held(few=len(reduces) // case.n_steps),
        "calls": {
            "bytes": [call.n_bytes for call in reduces],
            "in_backward": [call.in_backward for call in reduces],
            "hides": [call.hidden_ops > 0 for call in reduces],
        },
    }


DDP = Exercise(
    id="15-ddp",
    title="Data parallel, in buckets",
    points=5,
    minutes=45,
    difficulty=3,
    answers=(Answer("DDP"), Answer("train_step")),
    public=(
        Job(max_norm=0.2),
        Job(n_ranks=3, n_blocks=4, odd_ranks_swap=True),
        Job(n_ranks=4, n_blocks=8, cap_blocks=1.5, max_norm=0.2),
        Job(n_blocks=3, odd_ranks_skip=1, max_norm=0.2),
        Job(n_ranks=3, n_blocks=2, n_crossed=4),
        Job(n_ranks=1, n_steps=1),
    ),
    inputs=job_inputs,
    drive=drive_ddp,
    run=Run(ranks=lambda case: case.n_ranks, cluster=cluster_of, wall_s=30.0),
)
