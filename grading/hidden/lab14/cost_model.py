"""Lab 14: hidden cases of the cost model, and the programs whose time on the simulator is the right one.

The programs exchange messages of the right size and compute nothing; that those of the course's own algorithms take as
long is a test's to show.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import torch

from grading.hidden import Hidden
from labkit.exercises.lab14.cost_model import ALGORITHMS, Links
from labkit.oracles.lab14.cost_model import expected
from labkit.ranks import Cluster, Comm, Wire, simulate
from labkit.spec import CaseRun

Step = list[tuple[int, int, int]]
"""Messages of one round: (from, to, bytes)."""


def messages(algorithm: str, n: int, n_bytes: int) -> list[Step]:
    """The messages of an all-reduce among n ranks, round by round; those of one rank in the order of its ports."""
    if algorithm == "naive":
        return _there_and_back([[(rank, 0, n_bytes)] for rank in range(1, n)])
    if algorithm == "tree":
        widths = [2**level for level in range(math.ceil(math.log2(n)))]
        return _there_and_back(
            [[(rank + width, rank, n_bytes) for rank in range(0, n - width, 2 * width)] for width in widths]
        )
    if algorithm == "ring":
        return 2 * (n - 1) * [[(rank, (rank + 1) % n, n_bytes // n) for rank in range(n)]]
    inner = 2 ** (n.bit_length() - 1)
    left_over = [(rank, rank - inner, n_bytes) for rank in range(inner, n)]
    exchanges = [[(rank, rank ^ 2**level, n_bytes) for rank in range(inner)] for level in range(inner.bit_length() - 1)]
    return [left_over, *exchanges, [(dst, src, size) for src, dst, size in left_over]]


def _there_and_back(up: list[Step]) -> list[Step]:
    return up + [[(dst, src, size) for src, dst, size in step] for step in reversed(up)]


def time_s(algorithm: str, case: Links) -> float:
    """What the simulator's clock says of the messages."""
    steps = messages(algorithm, case.n, case.n_bytes)

    def program(comm: Comm) -> None:
        for step in steps:
            works = []
            for src, dst, size in step:
                if comm.rank in (src, dst):
                    # A tensor without memory: only its size counts.
                    tensor = torch.empty(size, dtype=torch.uint8, device="meta")
                    works.append(comm.isend(tensor, dst) if comm.rank == src else comm.irecv(tensor, src))
            for work in works:
                work.wait()

    wire = Wire(case.alpha_s, 1 / case.beta_s if case.beta_s else math.inf)
    return simulate(program, case.n, Cluster(within=wire))[1].seconds


def expect(run: CaseRun[Links]) -> dict[str, Any]:
    """Each algorithm's time, and the fastest one."""
    return expected(run.case, {name: time_s(name, run.case) for name in ALGORITHMS})


def cost_model_cases(rng: random.Random) -> tuple[Links, ...]:
    """First where the usual mistakes show, on both sides of the size from which the ring wins; then no β, and no α."""

    def links(n: int, ring_over_butterfly: float) -> Links:
        """α, β and a size at which the bytes count so many times as much as where butterfly and ring are equal."""
        alpha_s, beta_s = rng.uniform(2e-6, 60e-6), rng.uniform(0.005e-9, 2e-9)
        rounds = len(messages("butterfly", n, n)) - 2 * (n & (n - 1) == 0)
        equal_bytes = (2 * (n - 1) - rounds) * alpha_s / ((rounds - 2 * (n - 1) / n) * beta_s)
        return Links(n, n * max(1, round(equal_bytes * ring_over_butterfly / n)), alpha_s, beta_s)

    return (
        links(8, rng.uniform(2.0, 6.0)),
        links(rng.choice((5, 6, 7)), rng.uniform(0.2, 0.8)),
        links(rng.choice((9, 10, 11, 13)), rng.uniform(1.3, 3.0)),
        links(rng.choice((4, 16)), rng.uniform(0.3, 0.7)),
        links(3, rng.uniform(1.2, 1.6)),
        replace(links(6, 1.0), beta_s=0.0),
        replace(links(12, 1.0), alpha_s=0.0),
        Links(2, 2 * rng.randint(1_000, 1_000_000), rng.uniform(2e-6, 60e-6), 0.1e-9),
        Links(1, rng.randint(1_000, 1_000_000), 10e-6, 0.1e-9),
    )


COST_MODEL = Hidden("14-cost-model", cost_model_cases, expect)
