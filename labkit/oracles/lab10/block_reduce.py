"""Lab 10: the sum of each block's elements, what a tree and shuffles take for it, and what the usual slips make."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.block_reduce import Sums
from labkit.oracles.cuda import FAULTS, and_faults
from labkit.simt.lanes import WARP
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle

STEPS_OF_A_WARP = 5

ERRORS = and_faults(
    {
        "barrier:": "Not all threads of the block reach the same `__syncthreads()`. Threads past n have nothing to "
        "add, but they take part: let them bring 0. In the tree only the addition stands in the `if`, the barrier "
        "after it.",
        "warp synchronization:": "Lanes that the mask of a shuffle names do not take part in it. With the mask "
        "0xffffffff all 32 lanes have to come: let those past n bring 0, and call the shuffle outside of branches "
        "that part a warp. A lane that waits at a `__syncthreads()` in such a branch never comes either.",
        "race between blocks: writes out[": "Two blocks write the same element of `out`. Each block has a sum of its "
        "own, and a place for it: out[blockIdx.x].",
        "race between blocks:": FAULTS["race between blocks:"],
        "race: writes of_warp[": "Two threads write the same place of `of_warp`. Of each warp one lane writes, the "
        "one with t % 32 == 0, and each warp has a place of its own: of_warp[t / 32].",
        "race:": "Two threads touch the same place of shared memory in no given order. Between the write of one and "
        "the read of another there has to be a `__syncthreads()`: after the tile is filled, and after each step of "
        "the tree. Nothing orders the lanes of a warp by itself either.",
        "uninitialized shared memory: reads s[": "A place of `s` is read that nobody has written. Threads past n "
        "bring 0, so that there is a number of every thread of the block. There is none beyond: d begins at "
        "blockDim.x / 2, and only threads t < d add.",
        "uninitialized shared memory:": "A place of shared memory is read that nobody has written. Threads past n "
        "bring 0, and where only as many places as the block has warps were filled, no more than these may be read.",
        "out of bounds: reads x[": "A thread past the end reads x: let threads whose index is not below n bring 0.",
        "out of bounds:": "A thread goes past the end of shared memory, which needs a place for each of up to 1024 "
        "threads, or for each of up to 32 warps.",
    }
)


def padded(run: CaseRun[Sums]) -> torch.Tensor:
    """The elements of each block, [blocks, block], zeros past the end."""
    case = run.case
    rows = torch.zeros(case.grid * case.block)
    rows[: case.n] = run.tree["x"]
    return rows.view(case.grid, case.block)


def sums(run: CaseRun[Sums]) -> torch.Tensor:
    return padded(run).sum(1)


def of_elements(chosen: Callable[[torch.Tensor, Sums], torch.Tensor]) -> Callable[[CaseRun[Sums]], bool]:
    """Whether each block's sum is that of the chosen elements alone. chosen: (threads, case) -> a mask."""

    def explains(run: CaseRun[Sums]) -> bool:
        rows = padded(run)
        return torch.equal(run.got["out"], rows[:, chosen(torch.arange(run.case.block), run.case)].sum(1))

    return explains


def log2(block: int) -> int:
    return block.bit_length() - 1


def most_passes(run: CaseRun[Sums]) -> float:
    """Of shared memory, for the whole grid.

    A tree stores once a warp; each step loads twice and stores once for every warp in which a thread adds. Shuffles
    store one word a warp, and one warp reads these.
    """
    warps = run.case.warps
    if run.case.kernel == "shuffle_sum":
        return run.case.grid * (warps + 2)
    return run.case.grid * (warps + 3 * (warps - 1 + STEPS_OF_A_WARP) + 2)


def most_barriers(run: CaseRun[Sums]) -> float:
    per_warp = 2 if run.case.kernel == "shuffle_sum" else log2(run.case.block) + 2
    return run.case.grid * run.case.warps * per_warp


def too_many_passes(kernel: str, because: Callable[[CaseRun[Sums]], bool]) -> Callable[[CaseRun[Sums]], bool]:
    """Whether this kernel's sums are right, and its passes too many for this reason."""

    def explains(run: CaseRun[Sums]) -> bool:
        if run.case.kernel != kernel or not torch.equal(run.got["out"], sums(run)):
            return False
        over = run.measured["shared_wavefronts"] > most_passes(run) and not run.measured["atomic_lanes"]
        return over and because(run)

    return explains


def one_thread_adds(run: CaseRun[Sums]) -> bool:
    """Whether shared memory is read element by element."""
    return run.measured["shared_requests"] >= run.case.grid * run.case.block


def all_store(run: CaseRun[Sums]) -> bool:
    """Whether every warp reads the sum and stores it, and nothing else is too much."""
    case, measured = run.case, run.measured
    others = case.grid * (case.warps - 1)
    stores_all = measured["global_store_sectors"] >= case.grid * case.warps
    return stores_all and measured["shared_wavefronts"] - others <= most_passes(run)


def one_thread_adds_warps(run: CaseRun[Sums]) -> bool:
    """Whether the warps' sums are stored one by one and read one by one, but for the thread's own perhaps."""
    a_block = run.measured["shared_wavefronts"] / run.case.grid
    return 2 * run.case.warps - 1 <= a_block <= 2 * run.case.warps


def has_its_own_again(run: CaseRun[Sums]) -> bool:
    """Whether a step, in one round of shuffles or in both, has doubled every lane's value."""
    right, got = sums(run), run.got["out"]
    return run.case.kernel == "shuffle_sum" and (torch.equal(got, 2 * right) or torch.equal(got, 4 * right))


def never_adds(run: CaseRun[Sums]) -> bool:
    """Whether steps put what they read in place of what was there: the last lane's or thread's value is left.

    Of shuffles, in the first round, in the second, or in both. The second round's last lane has the last of 32 warps.
    """
    if run.case.kernel == "block_sum":
        return of_elements(lambda t, case: t == case.block - 1)(run)
    last_lane, last_warp = (lambda t: t % WARP == WARP - 1), (lambda t: t // WARP == WARP - 1)
    chosen = (last_lane, last_warp, lambda t: last_lane(t) & last_warp(t))
    return any(of_elements(lambda t, case, one=one: one(t))(run) for one in chosen)


def first_block_everywhere(run: CaseRun[Sums]) -> object:
    """Whether each sum is that of the first block's elements."""
    case, got = run.case, run.got["out"]
    if case.grid == 1:
        return CANNOT_TELL
    first = padded(run)[0].expand(case.grid, -1)
    # The guard may have been asked of i, as it should be.
    there = torch.arange(case.grid * case.block).view(case.grid, case.block) < case.n
    return any(torch.equal(got, played.sum(1)) for played in (first, first * there))


def only_the_first_stored(run: CaseRun[Sums]) -> bool:
    """Whether block 0's sum is there, and no other."""
    got = run.got["out"]
    return torch.equal(got[:1], sums(run)[:1]) and bool(got[1:].isnan().all()) and run.case.grid > 1


def shuffled_up(run: CaseRun[Sums]) -> bool:
    """Whether the first lanes' own values were doubled in every step, in one of the two rounds or in both."""
    if run.case.kernel != "shuffle_sum":
        return False
    of_lanes = padded(run).view(run.case.grid, run.case.warps, WARP)
    first, second = WARP * of_lanes[:, :, 0], WARP * of_lanes.sum(2)[:, 0]
    return any(torch.equal(run.got["out"], played) for played in (first.sum(1), second, WARP * first[:, 0]))


def has_conflicts(run: CaseRun[Sums]) -> bool:
    return run.measured["bank_conflicts"] > 0


def launched(run: Observation) -> str:
    return f"{run.case.kernel}<<<{run.case.grid}, {run.case.block}>>>(x, out, n={run.case.n})"


BLOCK_REDUCE = Oracle(
    id="10-block-reduce",
    expect=lambda run: {"out": sums(run)},
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "atomic_lanes",
            0,
            "Atomic additions to one place are carried out one after the other. Add in a tree: in each step half as "
            "many threads add as in the one before.",
        ),
        Budget(
            "shared_wavefronts",
            most_passes,
            "Shared memory takes more passes than it has to. In a tree let the threads that still add be neighbours, "
            "so that whole warps drop out. With shuffles, only one number of each warp goes through shared memory.",
        ),
        Budget(
            "barriers",
            most_barriers,
            "There are more barriers than it takes: one after the shared memory is filled, one after each step of a "
            "tree, and none between the shuffles of a warp.",
        ),
    ),
    diagnose=(
        Hint(
            lambda run: bool(run.got["out"].isnan().all()),
            "`out` holds anything before the launch, in the check NaN. Store the sum in it, and do not add to what is "
            "there.",
        ),
        Hint(
            only_the_first_stored,
            "Only block 0 stores its sum, and the other places of `out` hold what they held before, in the check NaN. "
            "i == 0 is true in the first block alone: the first thread of each block has threadIdx.x == 0.",
        ),
        Hint(
            first_block_everywhere,
            "Every block adds up the elements of the first one. Its own begin at blockIdx.x * blockDim.x: thread t "
            "has x[i].",
        ),
        Hint(
            shuffled_up,
            "`__shfl_up_sync` hands values to lanes with larger numbers, and the lanes at the bottom get their own "
            "back. Lane 0 is to have the sum, so values have to go down.",
        ),
        Hint(
            of_elements(lambda t, case: t < WARP),
            "Each sum is that of the block's first warp alone. Shuffles reach the lanes of their own warp: each "
            "warp's sum has to be put into shared memory, and added up there.",
        ),
        Hint(
            of_elements(lambda t, case: t % 2 == 0),
            "Only every other element is in the sums: the last step of the tree, in which neighbours are added, is "
            "missing.",
        ),
        Hint(
            of_elements(lambda t, case: t < case.block // 2),
            "Only the first half of each block is in the sums: the first step adds what lies half a block further on.",
        ),
        Hint(
            of_elements(lambda t, case: (t % 2 == 0) & (t // WARP % 2 == 0)),
            "Only every other lane of every other warp is in the sums: the last step, with a distance of 1, is "
            "missing.",
        ),
        Hint(
            of_elements(lambda t, case: t % WARP < WARP // 2),
            "Only the first 16 lanes of each warp are in the sums: the first shuffle has a distance of 16.",
        ),
        Hint(
            of_elements(lambda t, case: (t % WARP < WARP // 2) & (t // WARP < WARP // 2)),
            "Only the first 16 lanes of each warp are in the sums: the first shuffle has a distance of 16.",
        ),
        Hint(
            of_elements(lambda t, case: t == 0),
            "Each sum is the block's first element: what the other threads have was never added.",
        ),
        Hint(
            never_adds,
            "Nothing is added: a step puts what it reads in place of what the thread had, so the last lane's value "
            "arrives alone. Write `sum += __shfl_down_sync(...)`, and in the tree `s[t] += s[t + d]`.",
        ),
        Hint(
            has_its_own_again,
            "Each sum is 2 or 4 times too large: in some step every lane adds its own value once more. No lane lies 32 "
            "places further on, so a shuffle by 32 gives a lane its own value. The first distance is 16.",
        ),
        Hint(
            too_many_passes("block_sum", all_store),
            "The sums are right, but all threads read the sum and store it: one thread of each block is enough.",
        ),
        Hint(
            too_many_passes("block_sum", one_thread_adds),
            "The sums are right, but a single thread adds up a whole block, while all others wait. Let half of the "
            "threads add one element each, then half of these, and so on.",
        ),
        Hint(
            too_many_passes("block_sum", has_conflicts),
            "The sums are right, but the places that a warp reads lie several words apart, and share banks. Keep the "
            "threads and the places that are added next to one another: thread t adds s[t + d] to s[t], with d halved "
            "in each step.",
        ),
        Hint(
            too_many_passes("block_sum", lambda run: True),
            "The sums are right, but in this tree the threads that still add are spread over all warps, which stay "
            "busy for a long time. Begin with d = half a block, and let the threads t < d add s[t + d]: then whole "
            "warps are done early.",
        ),
        Hint(
            too_many_passes("shuffle_sum", one_thread_adds_warps),
            "The sums are right, but one thread reads the sums of the warps one after the other. Let the first warp "
            "read all of them at once, each lane one, and add them up with shuffles.",
        ),
        Hint(
            too_many_passes("shuffle_sum", lambda run: True),
            "The sums are right, but shared memory is used within a warp. There `__shfl_down_sync` does without: only "
            "one number of each warp has to go through shared memory, and takes one barrier.",
        ),
    ),
    errors=ERRORS,
    axis="lengths that are no multiple of the block's, and blocks of other sizes",
    call=launched,
)
