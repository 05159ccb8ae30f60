"""Lab 18: hidden cases of naive model parallelism, and the program whose idle time on the simulator is the right one.

The program computes for the given times and sends messages of the right size. It knows no formula.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from grading.hidden import Hidden
from labkit.exercises.lab18.naive_idle import Stages
from labkit.ranks import Cluster, Comm, Wire, simulate
from labkit.spec import CaseRun

BYTES_PER_MS = 100
"""Times of transfers are whole hundredths of a millisecond."""


def measured(case: Stages) -> dict[str, Any]:
    """What the simulator's clock says of one batch: of each stage the time in which it neither computes nor sends nor
    receives, as a share of the step; and the time of one device with the whole model, divided by that of the step."""
    p = len(case.forward_ms)

    def program(comm: Comm) -> None:
        rank = comm.rank

        def message(link: int) -> torch.Tensor:
            # A tensor without memory: only its size counts.
            return torch.empty(round(BYTES_PER_MS * case.transfer_ms[link]), dtype=torch.uint8, device="meta")

        if rank > 0:
            comm.recv(message(rank - 1), rank - 1)
        comm.compute(1e-3 * case.forward_ms[rank])
        if rank < p - 1:
            comm.send(message(rank), rank + 1)
            comm.recv(message(rank), rank + 1)
        comm.compute(1e-3 * case.backward_ms[rank])
        if rank > 0:
            comm.send(message(rank - 1), rank - 1)

    _, traffic = simulate(program, p, Cluster(within=Wire(0.0, 1e3 * BYTES_PER_MS)))
    shares = []
    for rank in range(p):
        talks_s = sum(one.end_s - one.start_s for one in traffic.transfers if rank in (one.src, one.dst))
        computes_s = 1e-3 * (case.forward_ms[rank] + case.backward_ms[rank])
        shares.append(1 - (computes_s + talks_s) / traffic.seconds)
    alone_s = 1e-3 * (sum(case.forward_ms) + sum(case.backward_ms))
    return {"shares": shares, "speedup": alone_s / traffic.seconds}


def expect(run: CaseRun[Stages]) -> dict[str, Any]:
    return measured(run.case)


def idle_cases(rng: random.Random) -> tuple[Stages, ...]:
    """Stages that differ in everything, equal ones without transfers, slow links, and one device."""

    def drawn(p: int, slowest_ms: float) -> Stages:
        return Stages(
            tuple(round(rng.uniform(1.0, 9.0), 1) for _ in range(p)),
            tuple(round(rng.uniform(2.0, 20.0), 1) for _ in range(p)),
            tuple(round(rng.uniform(0.2, slowest_ms), 2) for _ in range(p - 1)),
        )

    n_equal = rng.randint(5, 8)
    return (
        drawn(3, 2.0),
        Stages((3.0,) * n_equal, (6.0,) * n_equal, (0.0,) * (n_equal - 1)),
        drawn(rng.randint(5, 7), 12.0),
        drawn(rng.randint(3, 4), 3.0),
        drawn(2, 5.0),
        drawn(1, 1.0),
    )


NAIVE_IDLE = Hidden("18-naive-idle", idle_cases, expect)
