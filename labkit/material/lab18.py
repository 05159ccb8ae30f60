"""Lab 18: a training step of one batch over several devices, on simulated ranks with a virtual clock."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.ranks import Cluster, Comm, Wire, measure_ranks

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
