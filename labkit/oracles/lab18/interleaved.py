"""Lab 18: what is true of interleaved 1F1B: the published bubble, and so many chunks kept alive."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from labkit.exercises.lab18.interleaved import Looped, passes_of, play_looped
from labkit.exercises.lab18.orders import BadEntry
from labkit.oracles.hints import Condition, once
from labkit.oracles.lab18.schedules import TINY, Orders, forward_first, longest_wait
from labkit.pipeline import Action, ScheduleError, ScheduleRun, in_a_strip
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle
from labkit.torch_oracles import schedule_ops

Told = Callable[[CaseRun[Looped]], object]


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


def warm_up(wrong: Callable[[Looped, int], int]) -> Told:
    """The condition that so many forward passes come first on every rank, as a mistake has it; never more than there
    are. Where it has as many as there should be, nobody can tell."""

    def when(run: CaseRun[Looped]) -> object:
        ranks = range(run.case.n_ranks)
        mistake = [max(1, min(run.case.n_passes, wrong(run.case, rank))) for rank in ranks]
        if mistake == [may_keep(run.case, rank) for rank in ranks]:
            return CANNOT_TELL
        return [forward_first(order) for order in listed(run)] == mistake

    return when


def walk(run: CaseRun[Looped], kind: str, rank: int = 0) -> list[tuple[int, int]]:
    """The (chunk, micro-batch) that a rank goes through, forward or backward."""
    return [(one.stage // run.case.n_ranks, one.microbatch) for one in listed(run)[rank] if one.kind == kind]


def with_chunks(condition: Condition) -> Told:
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


def no_triples(run: CaseRun[Looped]) -> bool:
    """What was returned cannot be read at all."""
    return not all(
        isinstance(entry, list | tuple) and len(entry) == 3 and type(entry[1]) is int and type(entry[2]) is int
        for order in run.got["orders"]
        for entry in order
    )


def strip(run: CaseRun[Looped]) -> str | None:
    """What ran when, as far as it could."""
    n = run.case.n_ranks

    def token(action: Action) -> str:
        return f"{action.kind}{action.stage // n}.{action.microbatch}"

    more = {"names": "rank", "token": token, "token_says": "F1.3: chunk 1, micro-batch 3"}
    try:
        return in_a_strip(played(run).events, n, **more)
    except ScheduleError as error:
        return in_a_strip(error.so_far, n, error.stuck, **more) if error.stuck else None


def in_words(run: CaseRun[Looped]) -> str:
    case = run.case
    text = (
        f"interleaved(rank, n_ranks={case.n_ranks}, n_chunks={case.n_chunks}, n_microbatches={case.n_microbatches}) "
        f"for every rank, where a pass through a chunk takes {case.forward:g} forward and {case.backward:g} backward"
    )
    return text + (f", and a message {case.transfer:g}" if case.transfer else "")


INTERLEAVED = Oracle(
    id="18-interleaved",
    call=in_words,
    judge=(is_a_schedule, keeps_little, is_short),
    fact=lambda run: longest_wait(played(run), "rank"),
    strip=strip,
    axis="other numbers of ranks, chunks and micro-batches, passes of any length, and messages that take time",
    diagnose=(
        Hint(
            no_triples,
            "Return a list of triples for the one rank that is asked for: a letter, the number of the chunk on this "
            "rank, and the number of the micro-batch, such as ('F', 1, 3).",
        ),
        Hint(
            names_stages,
            "The second number is that of the chunk on its rank, from 0 to n_chunks - 1, and not that of the stage.",
        ),
        Hint(
            swaps_chunk_and_micro_batch,
            "The second number of a triple is the chunk, and the third is the micro-batch. Here they are exchanged.",
        ),
        Hint(
            one_chunk_s_worth,
            "A rank runs every micro-batch through each of its chunks: n_chunks * n_microbatches forward passes, and "
            "as many backward passes.",
        ),
        Hint(
            same_group_again,
            "Only the first n_ranks micro-batches ever come. After all chunks, the next group of n_ranks micro-batches "
            "follows.",
        ),
        Hint(
            past_the_last,
            "With few micro-batches the warm-up is shorter: a rank cannot run more than n_chunks * n_microbatches "
            "forward passes.",
        ),
        Hint(
            is_cut_short,
            "The last backward passes are missing: after the last forward pass, a rank still has as many "
            "backward passes to run as its warm-up had forward passes.",
        ),
        Hint(
            with_chunks(first_chunk_goes_back_first),
            "Backward, a micro-batch meets the chunks from the last to the first: start with chunk n_chunks - 1.",
        ),
        Hint(
            chunk_after_chunk,
            "All micro-batches go through one chunk before any goes through the next one, so the last stage starts "
            "late and everything is kept until then. Take n_ranks micro-batches through one chunk, then the same ones "
            "through the next chunk, and only then the next n_ranks micro-batches.",
        ),
        Hint(
            one_at_a_time,
            "A micro-batch that leaves this rank has to visit all others before it comes back for the next chunk. Take "
            "n_ranks micro-batches through a chunk first: when the last of them leaves, the first one is back.",
        ),
        Hint(
            warm_up(lambda case, rank: case.n_passes),
            "Every rank runs all its forward passes first, as in GPipe, and keeps the activations of them all. Start "
            "the backward passes after the warm-up.",
        ),
        Hint(
            warm_up(lambda case, rank: case.n_ranks - rank),
            "This is the warm-up of plain 1F1B. Now the first gradient comes back only after the micro-batch has been "
            "through all chunks: n_chunks - 1 more rounds of n_ranks forward passes.",
        ),
        Hint(
            warm_up(lambda case, rank: 2 * (case.n_ranks - rank - 1) + 1),
            "The warm-up lacks the passes through the earlier chunks: before a rank goes back for the first time, it "
            "has run n_ranks micro-batches through each chunk but the last.",
        ),
        Hint(
            warm_up(lambda case, rank: case.n_ranks - rank + (case.n_chunks - 1) * case.n_ranks),
            "The warm-up grows by one from rank to rank. That is enough while messages are free. Where they take time, "
            "let it grow by two, so that a rank has a forward pass to run while a gradient is on its way.",
        ),
        Hint(
            warm_up(lambda case, rank: 2 * (case.n_ranks - rank - 1) + case.n_chunks * case.n_ranks + 1),
            "The warm-up takes n_ranks micro-batches through all chunks. Take them through each chunk but the last: "
            "when micro-batch 0 has gone through the last one as well, its gradient is on its way.",
        ),
        Hint(
            warm_up(lambda case, rank: may_keep(case, 0)),
            "Every rank has the warm-up of rank 0. Gradients come back to the late ranks sooner.",
        ),
        Hint(
            warm_up(lambda case, rank: 2 * rank + (case.n_chunks - 1) * case.n_ranks + 1),
            "The warm-up is counted from the wrong end: rank 0 waits longest for its first gradient.",
        ),
        Hint(
            warm_up(lambda case, rank: 2 * (case.n_ranks - rank - 1) + (case.n_chunks - 1) * case.n_ranks + 2),
            "The warm-up is one forward pass too long: it should have 2 (p - r - 1) + (v - 1) p of them. Then come "
            "pairs of one forward and one backward pass.",
        ),
        Hint(
            warm_up(lambda case, rank: 2 * (case.n_ranks - rank - 1) + (case.n_chunks - 1) * case.n_ranks),
            "The warm-up is one forward pass too short: it should have 2 (p - r - 1) + (v - 1) p of them. Then come "
            "pairs of one forward and one backward pass, the forward pass first.",
        ),
    ),
)
