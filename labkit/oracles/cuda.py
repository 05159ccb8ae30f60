"""Budgets and hints that exercises on CUDA C++ have in common: an oracle names its own limits.

    budgets=(*sectors(load=lambda run: run.case.n // 8, store=lambda run: run.case.n // 8), NO_CONFLICTS),
    errors=FAULTS,

The figures are counted where the kernel is executed, in a process where nothing of the student's Python has run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.spec import Budget, CaseRun

Limit = float | Callable[[CaseRun], float]
"""A number, or run -> a number."""

FAULTS: Mapping[str, str] = {
    " of shared memory, but the block has": "A place lies past the end of shared memory: an array there is too short "
    "for the index. See for how many threads or elements it needs room, and how large the index can get.",
    "out of bounds: reads": "A thread reads past the end of what it was given. The last block has more threads than "
    "there are elements left: let each thread look whether its own index exists before it reads.",
    "out of bounds: writes": "A thread writes past the end of what it was given. The last block has more threads than "
    "there are elements left: let each thread look whether its own index exists before it writes.",
    "out of bounds: updates": "An atomic update goes past the end of what it was given: look at how its index is made.",
    "race between blocks:": "Blocks run in any order, and `__syncthreads()` waits for the threads of one block only. "
    "What one block needs of another takes a second launch, or atomics.",
    "race:": "Two threads touch the same place of shared memory in no given order: between the write of one and the "
    "access of the other, all threads of the block have to pass a `__syncthreads()`.",
    "uninitialized shared memory:": "Shared memory starts out holding anything. Every place that is read needs to be "
    "written first, and a `__syncthreads()` in between; look at the threads past the end as well.",
    "barrier:": "All threads of a block have to reach the same `__syncthreads()`: put it outside of branches, and let "
    "threads that have nothing to do skip the work, not return before it.",
    "warp synchronization:": "All lanes that the mask of a `__shfl_sync` names have to take part in it: call it "
    "outside of branches, with the mask of the lanes that really come.",
    "pending copy:": "An asynchronous copy has only been started: its thread has to wait for it "
    "(`__pipeline_wait_prior`), and all threads have to pass a `__syncthreads()` after that, before they use it.",
    "misaligned:": "An access of 8 or 16 bytes has to begin at a multiple of 8 or 16 bytes: see where the pointer "
    "starts and by how much it moves.",
    "never ends:": "A loop in the kernel does not end. See that its counter moves for every thread, and that nobody "
    "waits for a block that may not have started.",
}
"""On what CUDA leaves undefined, by a part of the error."""


_NO_SHARED_MEMORY = {
    "but the block has 0 bytes of it": "The launch gives the kernel no dynamic shared memory: declare the array with "
    "its size, as in `__shared__ float s[1024];`, without `extern`."
}


def and_faults(own: Mapping[str, str]) -> Mapping[str, str]:
    """An exercise's own hints on errors, which come before those of FAULTS and replace those of the same part."""
    return {**_NO_SHARED_MEMORY, **own, **FAULTS, **own}


def sectors(load: Limit | None = None, store: Limit | None = None) -> tuple[Budget, ...]:
    """The most 32-byte sectors of global memory that loads and stores may touch."""
    budgets = []
    if load is not None:
        hint = (
            "Loads touch more sectors of 32 bytes than they have to: let neighbouring threads of a warp read "
            "neighbouring elements, and read each element once."
        )
        budgets.append(Budget("global_load_sectors", load, hint))
    if store is not None:
        hint = (
            "Stores touch more sectors of 32 bytes than they have to: let neighbouring threads of a warp write "
            "neighbouring elements."
        )
        budgets.append(Budget("global_store_sectors", store, hint))
    return tuple(budgets)


NO_CONFLICTS = Budget(
    "bank_conflicts",
    0,
    "Lanes of a warp ask one bank of shared memory for different words, and are served one after the other. The bank "
    "of a 4-byte word is its index modulo 32: a row of 33 words moves each row of a tile on by one bank.",
)
"""For kernels whose shared memory every warp accesses in one pass."""

STAYS_IN_REGISTERS = Budget(
    "local_requests",
    0,
    "A thread's own array is indexed by what is only known at run time, so it lies in local memory, which is as far "
    "away as global memory. Index it by constants, in loops that are unrolled.",
)
"""No local memory."""


def wavefronts(limit: Limit) -> Budget:
    """The most passes of shared memory."""
    return Budget("shared_wavefronts", limit, "Shared memory takes more passes than it has to: access it less often.")


def instructions(limit: Limit) -> Budget:
    """The most instructions, one for each warp that executes it."""
    hint = "The warps execute too many instructions: let fewer of them do work in which most lanes are idle."
    return Budget("warp_instructions", limit, hint)


def updates(limit: Limit) -> Budget:
    """The most atomic updates, one for each lane."""
    return Budget("atomic_lanes", limit, "There are too many atomic updates: add up within a block first.")


def barriers(limit: Limit) -> Budget:
    """The most barriers, one for each warp that arrives."""
    return Budget("barriers", limit, "There are more barriers than it takes: put one only where data changes hands.")
