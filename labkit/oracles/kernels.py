"""Budgets that exercises on kernels have in common, with the hint that goes with each: an oracle names its own limits.

    budgets=(*moved(load=lambda run: 4 * run.case.n, store=lambda run: 4 * run.case.n), *SAFE)

The driver opens `stage.meter("traffic")` around the answer, and `stage.meter("compiled")` where `compiled` is used.
What the grader goes by is measured while the kernels run again from their text, on tensors drawn anew. So the driver
returns tensors, all of them made inside of these blocks; inputs are tensors where they are data; and PyTorch may move
what it likes between launches, and may add up or scale what kernels stored, which counts as traffic.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.meters.compiled.report import REGISTER_BYTES, SHARED_LIMIT_BYTES
from labkit.spec import Budget, CaseRun, Hint

Limit = float | Callable[[CaseRun], float]
"""A number, or run -> a number."""

UNDEFINED = (
    "Masked lanes that were loaded without `other=` take part in a sum, a maximum or a product, and they may hold "
    "anything: here NaN. Give the load an `other=` that changes nothing there."
)

SAFE = (
    Budget(
        "out_of_bounds",
        0,
        "A program accesses memory outside its tensors: mask the lanes that have nothing to do.",
    ),
    Budget(
        "races",
        0,
        "Two programs access the same element in no fixed order: give each its own, or use atomics.",
    ),
    Budget("undefined", 0, UNDEFINED),
)
"""For every kernel: it touches nothing outside of its tensors, and leaves no element to chance."""

NO_OTHER = Hint(lambda run: run.measured["undefined"] > 0, UNDEFINED)
"""Of values that are wrong because of it."""

_COMPARISONS = frozenset(f"torch.{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge"))


def _compares_on_the_host(run: CaseRun) -> bool:
    """PyTorch compares numbers, and computes nothing else."""
    computed = run.held.get("computed_by_torch", ())
    return bool(computed) and _COMPARISONS.issuperset(computed)


ASKS_THE_HOST = Hint(
    _compares_on_the_host,
    "An `if` on the value of a tensor stops the host until the GPU is done. Pass the tensor itself to the kernel, load "
    "the number there, and decide there.",
)
"""Of a comparison by PyTorch, which serves for an `if`."""

COPIED = Hint(
    lambda run: any(line.startswith("torch.clone") for line in run.held.get("load_bytes", ())),
    "`.contiguous()` copies the whole matrix before the kernel reads it again. Hand the strides to the kernel instead, "
    "and let it find each element where it is.",
)
"""Of bytes over the budget: an input was copied into another order."""

_FILLS = ("torch.zero", "torch.new_zero", "torch.one", "torch.new_one", "torch.full", "torch.new_full", "torch.fill")


def filled(store: Limit) -> Hint:
    """Of a result that is right, but was written twice: by PyTorch, and by the kernel. store: the most bytes stored."""

    def when(run: CaseRun) -> bool:
        most = store(run) if callable(store) else store
        fills = any(line.startswith(_FILLS) for line in run.held.get("store_bytes", ()))
        return fills and run.measured["store_bytes"] > most and _nearly_right(run)

    return Hint(
        when,
        "PyTorch fills memory that the kernel writes over in full: make it with torch.empty or torch.empty_like, which "
        "write nothing.",
    )


def _nearly_right(run: CaseRun) -> bool:
    return all(torch.allclose(run.got[name], right, rtol=1e-2, atol=1e-2) for name, right in run.expected.items())


BY_KERNELS = Budget(
    "computed_by_torch",
    0,
    "PyTorch computes a part of the result: compute it in a kernel. Between kernels PyTorch may only move data.",
)
"""The kernels do the computing. Whatever else a cheat breaks, this is the reason to name."""


def moved(load: Limit, store: Limit, atomic: Limit = 0, launches: Limit | None = None) -> tuple[Budget, ...]:
    """That kernels compute it, and the most bytes that all loads and stores, atomics and PyTorch's operations move."""
    budgets = (
        BY_KERNELS,
        Budget(
            "load_bytes", load, "Something is read more often than necessary: load it once and keep it in registers."
        ),
        Budget("store_bytes", store, "More is written than the result: keep what is in between in registers."),
        Budget("atomic_bytes", atomic, "Atomics move more bytes than necessary: add up in registers first."),
    )
    if launches is None:
        return budgets
    return (*budgets, Budget("launches", launches, "More kernels are launched than necessary: fuse them."))


def compiled(
    vector_width: Limit | None = None,
    matrix_instructions: Limit | None = None,
    spills: Limit = 0,
    matrix_flops: Limit | None = None,
) -> tuple[Budget, ...]:
    """What the compiler must make of every kernel, for an A100 and for an H100, where it runs.

    vector_width: bytes that one thread moves at once, at the least. matrix_instructions: at the least. matrix_flops: of
    products that run on the tensor cores, at the least; 2 * m * n * k for one of (m, k) by (k, n).
    """
    budgets = [Budget("spills", spills, "Its values do not fit into registers: use smaller blocks, or more warps.")]
    if vector_width is not None:
        hint = "Threads move memory in narrow pieces: let neighbouring lanes have neighbouring, aligned addresses."
        budgets.append(Budget("vector_width", vector_width, hint, at_least=True))
    hint = "The product does not run on the tensor cores: use `tl.dot`, with a type and precision they have."
    if matrix_instructions is not None:
        budgets.append(Budget("matrix_instructions", matrix_instructions, hint, at_least=True))
    if matrix_flops is not None:
        budgets.append(Budget("matrix_flops", matrix_flops, hint, at_least=True))
    return tuple(budgets)


ENOUGH_PROGRAMS = 64
"""An A100 has 108 multiprocessors, each of which runs several programs at the same time."""


IDLE_PROGRAMS = (
    "Nearly all of these programs have nothing to do: every lane of theirs lies past the end. A program takes a whole "
    "block, so the grid counts blocks: (triton.cdiv(n, BLOCK_SIZE),)."
)


def at_full_size(spills: int = 0, most_programs: Limit | None = None) -> tuple[Budget, ...]:
    """What a launch has to have and may take at `Exercise.full_size`, on an A100 and on an H100."""
    bounded = () if most_programs is None else (Budget("most_programs", most_programs, IDLE_PROGRAMS),)
    return (
        *bounded,
        Budget(
            "programs",
            ENOUGH_PROGRAMS,
            "A launch of a few programs leaves most of a GPU idle: an A100 has 108 multiprocessors. Give each program "
            "a block or a row of its own.",
            at_least=True,
        ),
        Budget(
            "block_bytes",
            REGISTER_BYTES,
            "At this size a block is larger than all registers of a multiprocessor: give blocks a fixed length, and go "
            "over a longer row or a longer sum in a loop.",
        ),
        Budget(
            "shared_bytes",
            SHARED_LIMIT_BYTES[80],
            "At this size a program takes more shared memory than a multiprocessor has: go over the inner dimension in "
            "steps of a fixed length.",
        ),
        Budget(
            "spills",
            spills,
            "At this size a block does not fit into registers: pass num_warps=8 at the launch, or give it a fixed "
            "length, and go over a longer row in a loop.",
        ),
    )
