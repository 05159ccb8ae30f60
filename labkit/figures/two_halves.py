"""The picture of labs 14, 16 and 17: all-reduce = reduce-scatter + all-gather, round by round.

Lab 14 draws the student's own function, the others the messages by which the library's two calls are counted.
"""

from __future__ import annotations

import torch

from labkit.figures.canvas import TRUTH, LabFigure
from labkit.figures.collective_trace import (
    AllReduce,
    CollectiveSteps,
    Holding,
    Message,
    states_after,
    trace_collective,
)
from labkit.figures.collectives import strip
from labkit.ranks import UNIT, Comm, Transfer, measure_ranks


def two_halves(all_reduce: AllReduce | None = None, n_ranks: int = 4) -> LabFigure:
    """A reduce-scatter and an all-gather, round by round: what each rank holds, and the messages in between.

    all_reduce: (comm, x) -> sum, made of the two halves; without it, the library's two calls.
    """
    steps = trace_collective(all_reduce, n_ranks) if all_reduce else halves_of(n_ranks)
    half = n_ranks - 1
    figure = strip(steps, range(min(steps.n_rounds, 2 * half + 1) + 1), width_in=9.4)
    if steps.n_rounds == 2 * half and _has_its_own_part(steps, half):
        title = f"all-reduce = reduce-scatter (rounds 1 to {half}) + all-gather (rounds {n_ranks} to {2 * half})"
        figure.axes[0].set_title(title, loc="left", fontsize=10, color=TRUTH)
        figure.alt = (
            f"{n_ranks} ranks with {n_ranks} parts each. In {half} rounds of a ring every rank completes the sum of "
            f"its own part; in {half} more rounds the complete parts travel to all ranks."
        )
    return figure


def _has_its_own_part(steps: CollectiveSteps, number: int) -> bool:
    """After this round every rank holds the sum of its own part."""
    return all(len(one.get(rank, ())) == steps.n_ranks for rank, one in enumerate(steps.states[number]))


def halves_of(n_ranks: int) -> CollectiveSteps:
    """The two calls on simulated ranks, with one element for each rank."""

    def run(comm: Comm) -> None:
        whole, part = torch.zeros(n_ranks, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        comm.reduce_scatter_single(part, whole)
        comm.all_gather_single(whole, part)

    _, traffic = measure_ranks(run, n_ranks, cluster=UNIT)
    messages = tuple(
        Message(one.src, one.dst, round(one.start_s) + 1, one.n_bytes, _holds(one, n_ranks))
        for one in traffic.transfers
    )
    return CollectiveSteps(n_ranks, n_ranks, 8 * n_ranks, messages, states_after(messages, n_ranks), traffic)


def _holds(one: Transfer, n: int) -> Holding:
    """Round k of the reduce-scatter: rank r sends part r - 1 - k, with the numbers of k + 1 ranks. After it, rank r
    sends part r - k, which is complete."""
    k = round(one.start_s)
    if one.call == "reduce_scatter":
        return {(one.src - 1 - k) % n: frozenset((one.src - j) % n for j in range(k + 1))}
    return {(one.src - (k - (n - 1))) % n: frozenset(range(n))}
