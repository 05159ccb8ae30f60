"""Lab 10: prefix sums, block by block, in a few additions an element, and not in log n of them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.scan import PER_THREAD, Prefix
from labkit.oracles.cuda import and_faults
from labkit.simt.lanes import WARP
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle

ADDITIONS = 3.25
"""An element. Its own thread adds it, and what comes before it; each thread adds its total in log2(256) = 8 rounds."""
ERRORS = and_faults(
    {
        "race: ": "In the same round one thread reads a total that its neighbour overwrites. Read into a variable of "
        "your own, let all threads pass a `__syncthreads()`, write, and let them pass another one.",
    }
)


def in_pieces(x: torch.Tensor, size: int) -> torch.Tensor:
    """Prefix sums that start anew every `size` elements."""
    return torch.cat([piece.cumsum(0) for piece in x.split(size)])


def right(run: CaseRun[Prefix]) -> torch.Tensor:
    return in_pieces(run.tree["x"], run.case.piece)


def totals(run: CaseRun[Prefix]) -> torch.Tensor:
    """Of each element, the sum of its thread's eight."""
    return torch.cat([piece.sum().expand(len(piece)) for piece in run.tree["x"].split(PER_THREAD)])


def is_result(play: Callable[[CaseRun[Prefix]], torch.Tensor]) -> Callable[[CaseRun[Prefix]], object]:
    """Whether a mistake gives exactly this result."""

    def explains(run: CaseRun[Prefix]) -> object:
        return torch.equal(run.got["y"], play(run)) and not torch.equal(play(run), right(run))

    return explains


def half_as_far(run: CaseRun[Prefix]) -> torch.Tensor:
    """What comes out where the last round is missing: each thread knows of half a block before it."""
    pieces = []
    for piece in run.tree["x"].split(run.case.piece):
        reach = piece.cumsum(0)
        n_back = PER_THREAD * (run.case.block // 2)
        own = in_pieces(piece, PER_THREAD)
        before = reach - own
        lost = torch.zeros_like(before)
        lost[n_back:] = before[: max(0, len(before) - n_back)]
        pieces.append(own + before - lost)
    return torch.cat(pieces)


def within_warps(run: CaseRun[Prefix]) -> object:
    if run.case.block == WARP:
        return CANNOT_TELL
    return is_result(lambda run: in_pieces(run.tree["x"], WARP * PER_THREAD))(run)


def only_the_first_block(run: CaseRun[Prefix]) -> bool:
    """Whether the first block's elements are right, and no others stored."""
    got, piece = run.got["y"], run.case.piece
    return torch.equal(got[:piece], right(run)[:piece]) and len(got) > piece and bool(got[piece:].isnan().all())


def one_total_after_the_other(run: CaseRun[Prefix]) -> bool:
    """Whether the values are right, and each thread adds the totals of all threads before it, one by one."""
    if not torch.equal(run.got["y"], right(run)):
        return False
    n_threads = run.case.n_blocks * run.case.block
    of_totals = n_threads * (run.case.block - 1) / 2
    own = run.measured["arithmetic"] - of_totals
    return run.case.n <= own <= 2 * n_threads * PER_THREAD


def launched(run: Observation) -> str:
    return f"scan<<<{run.case.n_blocks}, {run.case.block}>>>(x, y, n={run.case.n})"


SCAN = Oracle(
    id="10-scan",
    expect=lambda run: {"y": right(run)},
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "arithmetic",
            lambda run: ADDITIONS * run.case.n_blocks * run.case.piece,
            "Rounds over all elements cost log2(n) additions for each of them. Let each thread first add up its own "
            "eight elements, and do the rounds over the threads' totals only.",
        ),
    ),
    diagnose=(
        Hint(
            only_the_first_block,
            "Only the first block's elements are stored. Thread t of block b begins at element "
            "8 * (b * blockDim.x + t).",
        ),
        Hint(
            one_total_after_the_other,
            "The sums are right, but each thread adds up the totals of all threads before it, one after the other: "
            "thread t makes t additions. With the rounds it takes log2(blockDim.x).",
        ),
        Hint(
            is_result(lambda run: right(run) - run.tree["x"]),
            "That is the sum of all elements before this one: the element itself belongs to it, too.",
        ),
        Hint(
            is_result(lambda run: in_pieces(run.tree["x"], PER_THREAD)),
            "Each thread knows only its own eight elements: add the totals of all threads before it in the block.",
        ),
        Hint(
            is_result(lambda run: right(run) + totals(run)),
            "The thread's own total is in it twice: what comes before it are the totals up to the previous thread.",
        ),
        Hint(
            within_warps,
            "The sums start anew in every warp: shuffles reach the lanes of a warp only. Put the sum of each warp into "
            "shared memory, and add those of the warps before.",
        ),
        Hint(
            is_result(half_as_far),
            "The last round is missing: step goes on as long as it is below blockDim.x.",
        ),
        Hint(
            is_result(lambda run: run.tree["x"].cumsum(0)),
            "Every block sums up its own elements, from its first one on: what other blocks have is not added.",
        ),
    ),
    errors=ERRORS,
    axis="lengths that do not fill the last block, and other sizes of blocks",
    call=launched,
)
