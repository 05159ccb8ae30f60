"""Lab 18: what is true of several chunks on each rank: how long a step may take, and how many chunks are kept alive."""

from __future__ import annotations

from functools import lru_cache

from labkit.exercises.lab18.interleaved import Looped, passes_of, play_looped
from labkit.exercises.lab18.orders import BadEntry
from labkit.oracles.hints import once
from labkit.oracles.lab18.schedules import TINY, Orders
from labkit.pipeline import ScheduleError, ScheduleRun
from labkit.spec import CaseRun
from labkit.torch_oracles import schedule_ops


@once
def listed(run: CaseRun[Looped]) -> Orders:
    """The passes of each rank. Raises BadEntry."""
    return passes_of(run.got["orders"], run.case)


@once
def played(run: CaseRun[Looped]) -> ScheduleRun:
    """Raises BadEntry and ScheduleError."""
    return play_looped(listed(run), run.case)


def is_a_schedule(run: CaseRun[Looped]) -> str | None:
    """Every stage runs every micro-batch forward and backward once, and no pass waits for ever."""
    try:
        played(run)
    except (BadEntry, ScheduleError) as error:
        return str(error)
    return None


@lru_cache(maxsize=256)
def due(case: Looped) -> float:
    """A rank computes for n_passes pairs, and waits for p - 1 chunks forward and as many back.

    Where messages take time, what PyTorch's own order takes.
    """
    if case.transfer:
        orders = schedule_ops("Interleaved1F1B", case.n_ranks, case.n_microbatches, case.n_chunks)
        return play_looped(orders, case).makespan
    return (case.n_passes + case.n_ranks - 1) * (case.forward + case.backward)


def may_keep(case: Looped, rank: int) -> int:
    """So many chunks' activations a rank keeps at most."""
    return min(case.n_passes, 2 * (case.n_ranks - rank - 1) + (case.n_chunks - 1) * case.n_ranks + 1)


def keeps_little(run: CaseRun[Looped]) -> str | None:
    """No rank keeps more than that."""
    for rank, kept in enumerate(played(run).peak_live):
        if kept > may_keep(run.case, rank):
            return (
                f"rank {rank} keeps the activations of {kept} chunks at once, and {may_keep(run.case, rank)} are enough"
            )
    return None


def is_short(run: CaseRun[Looped]) -> str | None:
    """It takes no longer than it should."""
    taken, possible = played(run).makespan, due(run.case)
    if taken > possible + TINY:
        return f"the step takes {taken:g} units of time in this order, and {possible:g} are possible"
    return None
