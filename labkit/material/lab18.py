"""Lab 18: one batch over several devices on a virtual clock, and a small model that is trained over stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labkit.exercises.lab18.model import Stage, make_stage
from labkit.ranks import Cluster, Comm, Wire, measure_ranks

Step = Callable[..., Tensor | float | None]
"""(comm, stage, order, shapes, tokens, targets) -> the loss on the last rank."""
LEARNING_RATE = 0.05
INSTANT = Cluster(within=Wire(0.0, float("inf")))


@dataclass(frozen=True)
class NaiveStep:
    """One batch through equal stages, in virtual seconds. alone_s: the whole model on one device.

    NaiveStep(step_s=12.0, alone_s=12.0, busy_s=(3.0, 3.0, 3.0, 3.0))
    """

    step_s: float
    alone_s: float
    busy_s: tuple[float, ...]


def naive_step(n_stages: int, forward_s: float = 1.0, backward_s: float = 2.0) -> NaiveStep:
    """Send one batch forward and its gradient backward through the stages, over links that take no time."""

    def rank(comm: Comm) -> float:
        def compute(seconds: float) -> float:
            start_s = comm.now_s
            comm.compute(seconds)
            return comm.now_s - start_s

        before, after = comm.rank - 1, comm.rank + 1
        message = torch.zeros(1)
        if before >= 0:
            comm.recv(message, before)
        busy_s = compute(forward_s)
        if after < comm.world_size:
            comm.send(message, after)
            comm.recv(message, after)
        busy_s += compute(backward_s)
        if before >= 0:
            comm.send(message, before)
        return busy_s

    busy_s, traffic = measure_ranks(rank, n_stages, cluster=INSTANT)
    return NaiveStep(traffic.seconds, n_stages * (forward_s + backward_s), tuple(busy_s))


@dataclass(frozen=True)
class Training:
    """Some steps of training, in one process or over stages: the loss of each step, what each rank sent, and how far
    the two copies of the embedding are apart at the end.

    Training(losses=(3.1, 2.9), sent=(4096, 8192, 4096), apart=0.0)
    """

    losses: tuple[float, ...]
    sent: tuple[int, ...] = ()
    apart: float = 0.0


SIZES = ((4, 9), (2, 30), (6, 5), (1, 40), (3, 12), (5, 7), (2, 16), (3, 21))
N_LAYERS, WIDTH, VOCAB = (2, 2, 2), 32, 50


def train_on_stages(
    pipeline_step: Step, orders: Sequence[list[tuple[str, int]]], n_steps: int = 5, backend: str = "gloo"
) -> Training:
    """Train the model of lab 18 with these orders, a stage on each rank; with a single order it is one process."""
    n_ranks = len(orders)

    def rank(comm: Comm) -> tuple[list[float], Tensor | None]:
        gen = torch.Generator().manual_seed(18)
        tokens = [torch.randint(VOCAB, size, generator=gen) for size in SIZES]
        # Every token predicts the next one: the texts are counted up, which a small model can learn.
        targets = [(one + 1) % VOCAB for one in tokens]
        stage = make_stage(N_LAYERS, WIDTH, VOCAB, 18, comm.rank) if n_ranks > 1 else _whole_model()
        shapes = [(*size, WIDTH) for size in SIZES]
        ends = (tokens if stage.is_first else None, targets if stage.is_last else None)
        losses = []
        for _ in range(n_steps):
            loss = pipeline_step(comm, stage, orders[comm.rank], shapes, *ends)
            losses += [] if loss is None else [float(loss)]
            with torch.no_grad():
                for parameter in stage.parameters():
                    parameter -= LEARNING_RATE * parameter.grad
                    parameter.grad = None
        return losses, None if stage.tied_weight is None else stage.tied_weight.detach()

    # One process has nobody to talk to.
    found, traffic = measure_ranks(rank, n_ranks, backend=backend if n_ranks > 1 else "simulated")
    apart = float((found[0][1] - found[-1][1]).abs().max())
    return Training(tuple(found[-1][0]), traffic.bytes_sent, apart)


def _whole_model() -> Stage:
    """The same weights as those of the stages, in one."""
    stages = [make_stage(N_LAYERS, WIDTH, VOCAB, 18, rank) for rank in range(len(N_LAYERS))]
    whole = Stage(sum(N_LAYERS), WIDTH, VOCAB, is_first=True, is_last=True)
    whole.blocks = nn.ModuleList(block for stage in stages for block in stage.blocks)
    whole.norm, whole.tied_weight = stages[-1].norm, stages[0].tied_weight
    return whole
