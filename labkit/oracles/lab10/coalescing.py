"""Lab 10: y = a x + y over several elements a thread, each once, with as few sectors as its bytes fill."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.coalescing import Axpy
from labkit.oracles.cuda import and_faults
from labkit.simt.lanes import WARP
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle

FLOATS_PER_SECTOR = 8
SLACK = 1.05
MISALIGNED_BELOW = 1.6
"""A warp that begins in the middle of a sector touches five for four."""
MORE_REQUESTS = 1.2
"""Pieces that begin anywhere end with a warp that is not full; a second read of everything is more than that."""

ERRORS = and_faults(
    {
        "out of bounds:": "A thread goes past the end: n is no multiple of the number of threads, so each thread has "
        "to compare its index with n for every element, not for the first one alone.",
        "race between blocks:": "Two blocks change the same element. The next element of a thread lies as many places "
        "further as the whole grid has threads: gridDim.x * blockDim.x.",
        "never ends:": "A loop in the kernel does not end. See by how much its counter moves: by "
        "gridDim.x * blockDim.x, which is never 0.",
    }
)


def summed(run: CaseRun[Axpy]) -> torch.Tensor:
    return run.tree["a"] * run.tree["x"] + run.tree["y"]


def only_below(n_of: Callable[[Axpy], int]) -> Callable[[CaseRun[Axpy]], bool]:
    """Whether exactly the first elements were changed."""

    def explains(run: CaseRun[Axpy]) -> bool:
        n = n_of(run.case)
        played = torch.cat([summed(run)[:n], run.tree["y"][n:]])
        return torch.equal(run.got["y"], played)

    return explains


def ideal_loads(run: CaseRun[Axpy]) -> int:
    return 2 * -(-run.case.n // FLOATS_PER_SECTOR)


def ideal_stores(run: CaseRun[Axpy]) -> int:
    return -(-run.case.n // FLOATS_PER_SECTOR)


def share(run: CaseRun[Axpy]) -> float:
    """Sectors of loads and stores, in those that there have to be; only of right values."""
    if not torch.equal(run.got["y"], summed(run)):
        raise ValueError("the values are wrong, so the count explains nothing")
    measured = run.measured["global_load_sectors"] + run.measured["global_store_sectors"]
    return measured / (ideal_loads(run) + ideal_stores(run))


def whole_pieces(run: CaseRun[Axpy]) -> bool:
    """Whether a warp's lanes lie a whole piece apart, so that each touches a sector of its own."""
    return share(run) > 3


def one_lane_at_a_time(run: CaseRun[Axpy]) -> bool:
    """Whether each request is made for one lane alone: 2 loads and a store for every element."""
    return share(run) > 3 and run.measured["global_requests"] >= 3 * run.case.n


def misaligned(run: CaseRun[Axpy]) -> bool:
    """Whether the requests are as many as they have to be, and only their sectors are not."""
    at_least = 3 * -(-run.case.n // WARP)
    return SLACK < share(run) < MISALIGNED_BELOW and run.measured["global_requests"] <= MORE_REQUESTS * at_least


def launched(run: Observation) -> str:
    return f"axpy<<<{run.case.grid}, {run.case.block}>>>(a=3, x, y, n={run.case.n})"


_TOO_MANY = (
    "{what} touch more sectors than their bytes fill: let the 32 lanes of a warp have 32 neighbouring elements, and "
    "read each of them once."
)
COALESCING = Oracle(
    id="10-coalescing",
    expect=lambda run: {"y": summed(run)},
    judge=(inputs_untouched,),
    budgets=(
        Budget("global_load_sectors", lambda run: SLACK * ideal_loads(run), _TOO_MANY.format(what="Loads")),
        Budget("global_store_sectors", lambda run: SLACK * ideal_stores(run), _TOO_MANY.format(what="Stores")),
    ),
    diagnose=(
        Hint(only_below(lambda case: 0), "No element was changed: each thread has to store its results to y."),
        Hint(
            only_below(lambda case: case.grid * case.block),
            "Each thread changes one element, and there are more elements than threads: loop, with steps of "
            "gridDim.x * blockDim.x.",
        ),
        Hint(
            only_below(lambda case: case.n // (case.grid * case.block) * case.grid * case.block),
            "The last elements are missing, those that are left when n is divided by the number of threads. Let the "
            "loop run as long as the index is below n.",
        ),
        Hint(
            lambda run: torch.equal(run.got["y"], run.tree["a"] * run.tree["x"]),
            "The old y is missing: y[i] becomes a * x[i] + y[i].",
        ),
        Hint(
            one_lane_at_a_time,
            "Every element is a request of its own: a single thread works while the other lanes of its warp do "
            "nothing. Let all threads of the grid take part, thread i beginning at element i.",
        ),
        Hint(
            whole_pieces,
            "Each thread has a piece of neighbouring elements for itself, so the lanes of a warp are a whole piece "
            "apart, and each access touches a sector for every lane. Turn it round: neighbouring threads have "
            "neighbouring elements, and a thread's own next element is gridDim.x * blockDim.x further on.",
        ),
        Hint(
            misaligned,
            "Almost: the accesses of a warp lie together, but begin in the middle of a sector, so that 128 bytes lie "
            "in five sectors, not in four. Let every warp begin at a multiple of 32 elements.",
        ),
    ),
    errors=ERRORS,
    axis="lengths that are no multiple of the number of threads, and other grids",
    call=launched,
)
