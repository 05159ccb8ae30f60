"""Lab 10: a histogram, and what is left of it when one of the mistakes stays."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.histogram import BINS, Values
from labkit.oracles.cuda import and_faults
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle

ERRORS = and_faults(
    {
        "byte 256 of shared memory": "`mine` has 64 places, and a block may have more threads than that: only threads "
        "below 64 set a counter to zero, and only these add one to the total.",
        "barrier:": "Not all threads of the block reach the same `__syncthreads()`. Those past n have nothing to "
        "count, but the others wait for them: only the counting stands in the `if`, the barrier after it.",
        "race between blocks:": "All blocks add to the same `counts`, in any order. `counts[t] += …` reads, adds and "
        "writes in three steps, and another block may come in between: atomicAdd does it in one.",
        "race:": "Two threads touch one counter of shared memory in no given order. There are two ways to get there: "
        "`mine[x[i]]++` is three steps, which only atomicAdd does in one; and between setting the counters to zero, "
        "counting, and reading the counts all threads have to pass a `__syncthreads()`.",
        "uninitialized shared memory:": "A counter is used that nobody has set to zero: all 64 have to be, by "
        "whichever threads.",
    }
)


def of_values(x: torch.Tensor) -> torch.Tensor:
    return torch.bincount(x.long(), minlength=BINS).int()


def counted(run: CaseRun[Values]) -> torch.Tensor:
    return run.tree["counts"] + of_values(run.tree["x"])


def forgets_earlier_launches(run: CaseRun[Values]) -> bool:
    return torch.equal(run.got["counts"], of_values(run.tree["x"]))


def one_block_alone(run: CaseRun[Values]) -> object:
    """Whether the counts are those of a single block, added to what was there or not."""
    if run.case.grid == 1:
        return CANNOT_TELL
    before, blocks = run.tree["counts"], run.tree["x"].split(run.case.block)
    results = [found for block in blocks for found in (of_values(block), before + of_values(block))]
    return any(torch.equal(run.got["counts"], found) for found in results)


def once_for_each_block(run: CaseRun[Values]) -> bool:
    """Whether each block has counted all values."""
    return torch.equal(run.got["counts"], run.tree["counts"] + run.case.grid * of_values(run.tree["x"]))


def unchanged(run: CaseRun[Values]) -> bool:
    return torch.equal(run.got["counts"], run.tree["counts"])


def launched(run: Observation) -> str:
    return f"histogram<<<{run.case.grid}, {run.case.block}>>>(x, counts, n={run.case.n})"


HISTOGRAM = Oracle(
    id="10-histogram",
    expect=lambda run: {"counts": counted(run)},
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "atomic_lanes",
            lambda run: run.case.n + BINS * run.case.grid,
            "There are more atomic updates than it takes: one for each value, and one for each counter and block.",
        ),
    ),
    diagnose=(
        Hint(unchanged, "The counts are what they were: at the end each block adds its own to them."),
        Hint(
            one_block_alone,
            "The counts are those of one block: the others' were overwritten. Add to `counts`, with atomicAdd, because "
            "other blocks do so at the same time.",
        ),
        Hint(
            forgets_earlier_launches,
            "What was in `counts` before the launch is gone: add to it, and leave it to the caller to set it to zero.",
        ),
        Hint(once_for_each_block, "Every value was counted once by each block: a thread counts its own x[i] alone."),
    ),
    errors=ERRORS,
    axis="other lengths, blocks and grids, and values that are nearly all the same",
    call=launched,
)
