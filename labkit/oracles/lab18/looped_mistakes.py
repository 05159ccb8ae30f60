"""Lab 18: how the usual mistakes in an interleaved order show."""

from __future__ import annotations

from collections.abc import Callable

from labkit.exercises.lab18.interleaved import Looped
from labkit.oracles.hints import Condition
from labkit.oracles.lab18.looped_passes import listed, may_keep, played
from labkit.oracles.lab18.schedules import forward_first
from labkit.pipeline import ScheduleError
from labkit.spec import CANNOT_TELL, CaseRun


def warm_up(wrong: Callable[[Looped, int], int]) -> Condition:
    """The condition that so many forward passes come first on every rank, as a mistake has it; never more than there
    are. Where it has as many as there should be, nobody can tell."""

    def when(run: CaseRun[Looped]) -> object:
        ranks = range(run.case.n_ranks)
        mistake = [min(run.case.n_passes, wrong(run.case, rank)) for rank in ranks]
        at_least_one = [max(1, n) for n in mistake]
        if at_least_one == [may_keep(run.case, rank) for rank in ranks]:
            return CANNOT_TELL
        return [forward_first(order) for order in listed(run)] in (mistake, at_least_one)

    return when


def walk(run: CaseRun[Looped], kind: str, rank: int = 0) -> list[tuple[int, int]]:
    """The (chunk, micro-batch) that a rank goes through, forward or backward."""
    return [(one.stage // run.case.n_ranks, one.microbatch) for one in listed(run)[rank] if one.kind == kind]


def with_chunks(condition: Condition) -> Condition:
    """The condition, asked where there are several chunks and more than one micro-batch."""

    def when(run: CaseRun[Looped]) -> object:
        return condition(run) if run.case.n_chunks > 1 and run.case.n_microbatches > 1 else CANNOT_TELL

    return when


def chunk_after_chunk(run: CaseRun[Looped]) -> object:
    """All micro-batches go forward through one chunk before the next. If they are as many as the ranks, they should."""
    case = run.case
    if case.n_chunks == 1 or case.n_microbatches <= case.n_ranks:
        return CANNOT_TELL
    return walk(run, "F") == [(chunk, i) for chunk in range(case.n_chunks) for i in range(case.n_microbatches)]


def one_at_a_time(run: CaseRun[Looped]) -> object:
    """Each micro-batch goes forward through all chunks before the next one. On one rank, this is as it should be."""
    case = run.case
    if case.n_chunks == 1 or case.n_ranks == 1:
        return CANNOT_TELL
    return walk(run, "F") == [(chunk, i) for i in range(case.n_microbatches) for chunk in range(case.n_chunks)]


def first_chunk_goes_back_first(run: CaseRun[Looped]) -> bool:
    return walk(run, "B")[0][0] == 0


def newest_goes_back_first(run: CaseRun[Looped]) -> object:
    """Rank 0 goes back through another micro-batch than 0 first. Of a single one nobody can tell."""
    if run.case.n_microbatches == 1:
        return CANNOT_TELL
    return walk(run, "B")[0][1] != 0


def one_chunk_s_worth(run: CaseRun[Looped]) -> bool:
    """Every rank lists n_microbatches forward passes, and not n_chunks times as many."""
    return all(len(walk(run, "F", rank)) == run.case.n_microbatches for rank in range(run.case.n_ranks))


def same_group_again(run: CaseRun[Looped]) -> object:
    """Only the first n_ranks micro-batches are named."""
    if run.case.n_microbatches <= run.case.n_ranks:
        return CANNOT_TELL
    named = {one.microbatch for order in listed(run) for one in order}
    return named == set(range(run.case.n_ranks))


def names_stages(run: CaseRun[Looped]) -> object:
    """Chunks are named by the numbers of the stages that they are. On one rank both are the same."""
    case = run.case
    if case.n_ranks == 1:
        return CANNOT_TELL
    named = [{entry[1] for entry in order} for order in run.got["orders"]]
    return all(one == set(range(rank, case.n_ranks * case.n_chunks, case.n_ranks)) for rank, one in enumerate(named))


def swaps_chunk_and_micro_batch(run: CaseRun[Looped]) -> object:
    """The micro-batch stands before the chunk. Where they are as many, nobody can tell."""
    case = run.case
    if case.n_chunks == case.n_microbatches:
        return CANNOT_TELL
    named = [[{entry[place] for entry in order} for place in (1, 2)] for order in run.got["orders"]]
    return all(one == [set(range(case.n_microbatches)), set(range(case.n_chunks))] for one in named)


def past_the_last(run: CaseRun[Looped]) -> object:
    """The warm-up would be longer than all there is to run, and micro-batches are listed that do not exist."""
    case = run.case
    if 2 * (case.n_ranks - 1) + (case.n_chunks - 1) * case.n_ranks <= case.n_passes:
        return False
    return max(one.microbatch for order in listed(run) for one in order) >= case.n_microbatches


def is_cut_short(run: CaseRun[Looped]) -> bool:
    """All forward passes are there, and rank 0 lacks backward passes."""
    return len(walk(run, "F")) == run.case.n_passes > len(walk(run, "B"))


def some_twice_or_missing(run: CaseRun[Looped]) -> bool:
    try:
        played(run)
    except ScheduleError as error:
        return error.kind in ("twice", "missing")
    return False


def no_triples(run: CaseRun[Looped]) -> bool:
    """What was returned cannot be read at all."""
    return not all(
        isinstance(entry, list | tuple) and len(entry) == 3 and type(entry[1]) is int and type(entry[2]) is int
        for order in run.got["orders"]
        for entry in order
    )
