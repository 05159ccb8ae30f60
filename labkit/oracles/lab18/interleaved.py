"""Lab 18: the oracle of interleaved 1F1B: the published bubble, and so many chunks kept alive.

What is due stands in `looped_passes`, and what mistakes look like in `looped_mistakes`.
"""

from __future__ import annotations

from labkit.exercises.lab18.interleaved import Looped
from labkit.oracles.lab18.looped_mistakes import (
    chunk_after_chunk,
    first_chunk_goes_back_first,
    is_cut_short,
    names_stages,
    newest_goes_back_first,
    no_triples,
    one_at_a_time,
    one_chunk_s_worth,
    past_the_last,
    same_group_again,
    some_twice_or_missing,
    swaps_chunk_and_micro_batch,
    warm_up,
    with_chunks,
)
from labkit.oracles.lab18.looped_passes import is_a_schedule, is_short, keeps_little, may_keep, played
from labkit.oracles.lab18.schedules import longest_wait
from labkit.pipeline import Action, ScheduleError, in_a_strip
from labkit.spec import CaseRun, Hint, Oracle


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
            newest_goes_back_first,
            "The first gradient that comes back is that of micro-batch 0. The micro-batches come in the same order "
            "backward as forward. Only the chunks run the other way.",
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
            warm_up(lambda case, rank: case.n_chunks * (case.n_ranks - rank - 1) + 1),
            "This is the warm-up of plain 1F1B, multiplied by n_chunks. But the first gradient of the last rank, too, "
            "comes back only after micro-batch 0 has been through all its chunks: before that, it runs n_ranks "
            "micro-batches through each chunk but the last.",
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
        Hint(
            warm_up(lambda case, rank: 2 * (case.n_ranks - rank) + (case.n_chunks - 1) * case.n_ranks + 1),
            "The warm-up is two forward passes too long on every rank: ranks are numbered from 0, and it should have "
            "2 (p - r - 1) + (v - 1) p of them.",
        ),
        Hint(
            warm_up(lambda case, rank: min(case.n_microbatches, may_keep(case, rank) - 1) + 1),
            "The warm-up is cut off at n_microbatches. A rank runs n_chunks * n_microbatches forward passes: cut it "
            "off there.",
        ),
        Hint(
            some_twice_or_missing,
            "Some rank lists a pass twice, or leaves one out. Each pair of a chunk and a micro-batch comes once "
            "forward and once backward: write down both numbers for k = 0, 1, 2, ..., and look for the first pair "
            "that is not as it should be.",
        ),
    ),
)
