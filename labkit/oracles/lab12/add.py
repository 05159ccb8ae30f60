"""Lab 12: what is true of a masked sum, and what the usual mistakes look like."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab12.shapes import Vector, dtype_of
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import SAFE, at_full_size, compiled, moved
from labkit.oracles.lab12.close import FILLED_HINT, fills_first
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle
from labkit.unwritten import unwritten

MANY = 200
"""From so many elements on, the last, shorter piece of memory is a small part of all."""

FEW = 8
"""A program's last block that is missing is nearly always longer."""


def is_wide(case: Vector) -> bool:
    """Whether threads can take several elements at once: whole blocks, at addresses that 16 bytes divide."""
    return case.n % 1024 == 0


def only_the_end(run: CaseRun[Vector]) -> object:
    """The elements up to some place are right, and of those behind it many are not.

    Where a vector is shorter than a block, nothing is right, or everything.
    """
    right = run.got["out"] == run.tree["x"] + run.tree["y"]
    if right.all() or not right.any():
        return CANNOT_TELL
    first = int(right.int().argmin())
    return first > 0 and right[first:].double().mean() < 0.5


def last_ones_missing(run: CaseRun[Vector]) -> object:
    """A few elements at the end, and no others, were never stored."""
    if run.case.n <= FEW:
        return CANNOT_TELL
    missing = unwritten(run.got["out"])
    n_missing = int(missing.sum())
    return 0 < n_missing <= FEW and bool(missing[-n_missing:].all())


def rounded_inside(run: CaseRun[Vector]) -> bool:
    """Of the right dtype, and off by the rounding of a shorter format and by no more."""
    out, right = run.got["out"], run.tree["x"] + run.tree["y"]
    close = torch.allclose(out.double(), right.double(), rtol=2**-7, atol=2**-7)
    return out.dtype == right.dtype and close and not torch.equal(out, right)


def nothing_stored(run: CaseRun[Vector]) -> bool:
    return bool(unwritten(run.got["out"]).all())


def hardly_any_right(run: CaseRun[Vector]) -> bool:
    return bool((run.got["out"] != run.tree["x"] + run.tree["y"]).double().mean() > 0.9)


ADD = Oracle(
    id="12-add",
    expect=lambda run: {"out": torch.add(run.tree["x"], run.tree["y"])},
    judge=(inputs_untouched,),
    budgets=(
        *SAFE,
        # Read: x and y. Written: their sum.
        *moved(load=lambda run: 2 * run.case.n_bytes, store=lambda run: run.case.n_bytes, launches=1),
        Budget(
            "sector_efficiency",
            lambda run: 0.9 if run.case.n >= MANY else 0,
            "Memory comes in pieces of 32 bytes, and most of each piece goes to waste: give a program neighbouring "
            "elements.",
            at_least=True,
        ),
        *compiled(),
        Budget(
            "vector_width",
            lambda run: 2 * dtype_of(run.case).itemsize if is_wide(run.case) else 0,
            "Each thread moves a single element at a time. Give it several: 4 warps are 128 threads, so take a block "
            "of 512 or 1024 neighbouring elements.",
            at_least=True,
        ),
    ),
    full_size=at_full_size(most_programs=lambda run: run.case.n // 256),
    call=lambda run: as_call("add", run.tree["x"], run.tree["y"]),
    diagnose=(
        Hint(fills_first, FILLED_HINT),
        Hint(
            last_ones_missing,
            "Only the last elements are never stored. The mask ends too early (offs < n), or blocks overlap, or the "
            "last one has no program (round up: triton.cdiv).",
        ),
        Hint(
            rounded_inside,
            "The values are nearly right, but rounded on the way: add in the dtype of x and y, or in float32.",
        ),
        Hint(
            only_the_end,
            "The beginning is right and the rest is not. Either there are too few programs (round up: triton.cdiv), or "
            "all take the same block (tl.program_id).",
        ),
        Hint(
            nothing_stored,
            "Nothing was stored at all. Where n is smaller than a block, a grid that is rounded down has no program: "
            "round up, with triton.cdiv.",
        ),
        Hint(
            hardly_any_right,
            "Hardly any element is right. Look at what is added and at what is stored.",
        ),
    ),
)
