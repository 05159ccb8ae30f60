"""Lab 10: what a branch makes of each element, and how few warps have to take it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.divergence import UNTOUCHED, Mixture
from labkit.oracles.cuda import and_faults
from labkit.oracles.hints import once
from labkit.simt.lanes import WARP
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle

ROUNDS = 32
A_WARP, A_HARD_WARP = 70, 280
"""Instructions. `hard` has about 200; a list by votes and prefix sums, the dearest way there is, takes 60."""
ERRORS = and_faults(
    {
        "uninitialized shared memory:": "Shared memory starts out holding anything, the counter too: one thread sets "
        "it to 0, and all pass a `__syncthreads()` before anybody counts. What is not on the list is not to be read.",
        "race: ": "The list is whole only after every thread of the block has put its element on it, and the counter "
        "is 0 only after one thread has set it: a `__syncthreads()` belongs between each of these steps and the next. "
        "And `count++` is three steps, which only atomicAdd does in one.",
    }
)


@once
def mixed(run: CaseRun[Mixture]) -> torch.Tensor:
    """What `hard` makes of every element."""
    return hard(run.tree["x"])


@once
def mixed_indices(run: CaseRun[Mixture]) -> torch.Tensor:
    """What it makes of every element's index."""
    return hard(torch.arange(run.case.n))


def hard(values: torch.Tensor) -> torch.Tensor:
    """In 64 bits of which 32 are used."""
    v = values.long() & 0xFFFFFFFF
    for _ in range(ROUNDS):
        v = v ^ (v << 13) & 0xFFFFFFFF
        v = v ^ v >> 17
        v = v ^ (v << 5) & 0xFFFFFFFF
    return torch.where(v >= 2**31, v - 2**32, v).int()


def right(run: CaseRun[Mixture]) -> torch.Tensor:
    x = run.tree["x"]
    return torch.where(x < 0, mixed(run), x)


def limit(run: CaseRun[Mixture]) -> int:
    """So many instructions for each warp, and more for each that is full of negative elements."""
    hard_warps = sum(-(-int((piece < 0).sum()) // WARP) for piece in run.tree["x"].split(run.case.block))
    return A_WARP * run.case.grid * run.case.block // WARP + A_HARD_WARP * hard_warps


def wrong_at(where: Callable[[CaseRun[Mixture]], torch.Tensor]) -> Callable[[CaseRun[Mixture]], bool]:
    """Whether there are such elements, and no others are wrong."""

    def explains(run: CaseRun[Mixture]) -> bool:
        found = where(run)
        return bool(found.any()) and torch.equal(run.got["y"][~found], right(run)[~found])

    return explains


def stored_by_place(run: CaseRun[Mixture]) -> bool:
    """Whether the results of a block stand at its beginning, in some order."""
    pieces = zip(*(one.split(run.case.block) for one in (run.tree["x"], run.got["y"], mixed(run))), strict=True)
    for x, y, hard in pieces:
        results = hard[x < 0].sort().values
        if not torch.equal(y[: len(results)].sort().values, results):
            return False
    return True


def launched(run: Observation) -> str:
    return f"mix<<<{run.case.grid}, {run.case.block}>>>(x, y, n={run.case.n})"


DIVERGENCE = Oracle(
    id="10-divergence",
    expect=lambda run: {"y": right(run)},
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "warp_instructions",
            limit,
            "`hard` costs a warp the same for one lane as for 32, and nearly every warp has a negative element. Put "
            "the indices of all negative elements of the block on a list, and let full warps work it off: thread t "
            "takes the element at place t.",
        ),
    ),
    diagnose=(
        Hint(
            wrong_at(lambda run: (run.tree["x"] < 0) & (run.got["y"] == run.tree["x"])),
            "Negative elements were copied as they are: they become hard(x).",
        ),
        Hint(
            wrong_at(lambda run: (run.tree["x"] >= 0) & (run.got["y"] == mixed(run))),
            "Elements that are not negative became hard(x), too: they stay as they are.",
        ),
        Hint(
            wrong_at(lambda run: (run.tree["x"] >= 0) & (run.got["y"] == UNTOUCHED)),
            "Elements that are not negative were not stored: y gets all elements, and these as they are.",
        ),
        Hint(
            wrong_at(lambda run: (run.tree["x"] < 0) & (run.got["y"] == UNTOUCHED)),
            "Some negative elements were never stored. A block may have as many of them as threads, so the list needs "
            "room for blockDim.x indices, and threads of all warps have to work it off.",
        ),
        Hint(
            wrong_at(lambda run: (run.tree["x"] < 0) & (run.got["y"] == mixed_indices(run))),
            "`hard` was given the index of an element, which is what the list holds. It takes the element: x at that "
            "index.",
        ),
        Hint(
            stored_by_place,
            "The results stand at their places in the list. Store each where its element came from: the list holds the "
            "index.",
        ),
    ),
    errors=ERRORS,
    axis="other sizes of blocks, and blocks in which all elements are negative",
    call=launched,
)
