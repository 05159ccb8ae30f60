"""The picture of labs 14 and 16: all-reduce = reduce-scatter + all-gather, drawn as lab 14 draws an all-reduce.

The messages are those that the library's own two calls are counted by. No function of the student's is run.
"""

from __future__ import annotations

import torch

from labkit.figures.canvas import TRUTH, LabFigure
from labkit.figures.collective_trace import CollectiveSteps, Holding, Message, states_after
from labkit.figures.collectives import strip
from labkit.ranks import UNIT, Comm, Transfer, measure_ranks


def two_halves(n_ranks: int = 4) -> LabFigure:
    """A reduce-scatter and an all-gather, round by round: what each rank holds, and the messages in between."""
    steps = halves_of(n_ranks)
    figure = strip(steps, range(steps.n_rounds + 1), width_in=9.4)
    figure.axes[0].set_title(
        f"all-reduce = reduce-scatter (rounds 1 to {n_ranks - 1}) + all-gather (rounds {n_ranks} to {2 * n_ranks - 2})",
        loc="left",
        fontsize=10,
        color=TRUTH,
    )
    figure.alt = (
        f"{n_ranks} ranks with {n_ranks} parts each. In {n_ranks - 1} rounds of a ring every rank completes the sum of "
        f"its own part; in {n_ranks - 1} more rounds the complete parts travel to all ranks."
    )
    return figure


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
