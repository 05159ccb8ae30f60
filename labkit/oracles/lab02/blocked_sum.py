"""Lab 02: what is true of a blocked sum, and what the usual mistakes look like."""

from __future__ import annotations

import math

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab02.blocked_sum import Blocks
from labkit.oracles.calls import as_call
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Oracle, Tolerance


def true_blocked(run: CaseRun[Blocks]) -> dict[str, object]:
    return {"out": run.tree["x"].double().sum(run.case.dim).float(), "dispatches": 0}


def blocked_tolerance(run: CaseRun[Blocks]) -> dict[str, Tolerance]:
    """(b + n/b) u sum|x| for blocks of b (Blanchard, Higham and Mary 2020), u of float32. The count is judged below."""
    case = run.case
    u = torch.finfo(torch.float32).eps / 2
    size = float(run.tree["x"].double().abs().sum(case.dim).max())
    return {
        "out": Tolerance(atol=(min(case.block_size, case.n_summed) + case.n_blocks) * u * size),
        "dispatches": Tolerance(atol=math.inf),
    }


def in_blocks(run: CaseRun) -> str | None:
    """Every block takes at least one operation."""
    n_operations = run.got["dispatches"]
    if n_operations >= run.case.n_blocks:
        return None
    return f"{n_operations:g} PyTorch operations cannot have gone through {run.case.n_blocks} blocks one by one"


def blocked_operations(run: CaseRun[Blocks]) -> float:
    """16 n/b + 32: a block takes a slice, a cast, a sum and an addition, and may take four times as many."""
    return 16 * run.case.n_blocks + 32


def blocked_bytes(run: CaseRun[Blocks]) -> float:
    """Two blocks in float32 and eight tensors of the result's size, or half as many of each in float64.

    Two, because a loop that names its block in float32 still holds the last one while it converts the next.
    """
    n_results = run.tree["x"].numel() // run.case.n_summed
    return 4 * n_results * (2 * min(run.case.block_size, run.case.n_summed) + 8)


def as_many_as_chunks(run: CaseRun[Blocks]) -> object:
    """Over the operations allowed, by as much as x.chunk(block_size) explains and fewer than single slices take."""
    case = run.case
    n_chunks = math.ceil(case.n_summed / math.ceil(case.n_summed / case.block_size))
    n_operations = run.got["dispatches"]
    if n_operations <= blocked_operations(run):
        return CANNOT_TELL
    return close_to_bound(run) and 2 * n_chunks <= n_operations < min(12 * n_chunks, 2 * case.n_summed)


def close_to(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    return got.shape == wanted.shape and torch.allclose(got.double(), wanted, rtol=1e-4, atol=0)


def other_axis(run: CaseRun[Blocks]) -> bool:
    got = run.got
    x = run.tree["x"].double()
    others = [dim for dim in range(x.dim()) if dim != run.case.dim % x.dim()]
    return got["out"].dim() == 0 or (
        any(got["out"].shape == x.sum(dim).shape for dim in others)
        and (got["out"].shape != x.sum(run.case.dim).shape or any(close_to(got["out"], x.sum(dim)) for dim in others))
    )


def without_the_rest(run: CaseRun[Blocks]) -> bool:
    case = run.case
    whole = case.n_summed // case.block_size * case.block_size
    return whole < case.n_summed and close_to(
        run.got["out"], run.tree["x"].double().narrow(case.dim, 0, whole).sum(case.dim)
    )


def counted_twice(run: CaseRun[Blocks]) -> bool:
    """The sum and the first block once more, or a last block that is full because it begins among the slices before."""
    case = run.case
    x, n, size = run.tree["x"].double(), case.n_summed, min(case.block_size, case.n_summed)
    extra = (x.narrow(case.dim, 0, size), x.narrow(case.dim, n - size, size - 1 - (n - 1) % size))
    return any(part.numel() and close_to(run.got["out"], x.sum(case.dim) + part.sum(case.dim)) for part in extra)


def rest_of_the_axes(run: CaseRun[Blocks]) -> torch.Size:
    """The shape of the result."""
    return run.tree["x"].select(run.case.dim, 0).shape


def half_block_sums(run: CaseRun[Blocks]) -> bool:
    """Wrong by no more than rounding each block's sum to float16 explains."""
    wanted = run.tree["x"].double().sum(run.case.dim)
    return run.got["out"].shape == wanted.shape and torch.allclose(run.got["out"].double(), wanted, rtol=2**-10, atol=0)


def in_float16(out: torch.Tensor) -> bool:
    return bool((out.half().float() == out).all())


def close_to_bound(run: CaseRun[Blocks]) -> bool:
    wanted = run.expected["out"]
    return bool(((run.got["out"] - wanted).abs() <= blocked_tolerance(run)["out"].atol).all())


def too_far(run: CaseRun[Blocks]) -> bool:
    return not close_to_bound(run)


def how_far(run: CaseRun[Blocks]) -> str | None:
    """The largest error, relative to its sum."""
    out, wanted = run.got["out"].double(), run.expected["out"].double()
    return (
        f"the largest error is {((out - wanted) / wanted).abs().max():.2g} of its sum; float16 rounds by up to 4.9e-4"
    )


SHAPES_DIFFER = (
    "A block's sum and the accumulator differ in shape. Both have the axes of x except dim: cut the blocks along dim "
    "and sum along the same axis, which a negative dim counts from the end."
)

BLOCKED_SUM = Oracle(
    id="02-blocked-sum",
    expect=true_blocked,
    tolerance=blocked_tolerance,
    judge=(inputs_untouched, in_blocks),
    budgets=(
        Budget(
            "dispatches",
            blocked_operations,
            "That is a Python loop over single slices. Take block_size of them at a time, and let one call sum them.",
        ),
        Budget(
            "peak_bytes",
            blocked_bytes,
            "More was held at once than two blocks in float32. Convert inside the loop, one block at a time. Three "
            "things hold more: a cast, a reshape or contiguous() of the whole tensor copies all of it, a list of "
            "blocks keeps them all, and a block in float64 counts twice.",
        ),
    ),
    errors={"The size of tensor": SHAPES_DIFFER, "output with shape": SHAPES_DIFFER},
    diagnose=(
        Hint(
            lambda run: run.got["out"].dtype == torch.float16 or (in_float16(run.got["out"]) and too_far(run)),
            "The sum was kept in float16, which ends at 65504 and has 11 bits. The accumulator must be float32.",
        ),
        Hint(
            lambda run: run.got["out"].shape == run.tree["x"].sum(run.case.dim, keepdim=True).shape,
            "The summed axis is still there with length 1. The result has one axis fewer than x.",
        ),
        Hint(
            lambda run: run.got["out"].shape == rest_of_the_axes(run)[::-1] != run.got["out"].shape[::-1],
            "The axes of the result are in another order than in x. transpose swaps two axes; movedim keeps the order "
            "of all others.",
        ),
        Hint(
            lambda run: (
                run.got["out"].shape == run.tree["x"].sum(run.case.dim).squeeze().shape != rest_of_the_axes(run)
            ),
            "An axis of length 1 is gone that was not summed. squeeze() removes them all, squeeze(dim) only that one.",
        ),
        Hint(
            other_axis,
            "Another axis than dim was summed or cut into blocks. x[i:j] always cuts the first one, and narrow cuts "
            "any.",
        ),
        Hint(
            without_the_rest,
            "The last block is missing. Where block_size does not divide the length, it is shorter than the others.",
        ),
        Hint(
            counted_twice,
            "Some slices were added twice. The blocks must not overlap, and a sum that starts with the first block "
            "must not add it again.",
        ),
        Hint(
            lambda run: half_block_sums(run) and too_far(run),
            "Each block's sum was rounded to float16 before it was added. Convert the block before it is summed, or "
            "give sum the dtype.",
        ),
        Hint(
            lambda run: close_to_bound(run) and run.got["dispatches"] < run.case.n_blocks,
            "The whole tensor went into one call (or into NumPy, where the meter cannot see it). Go through it with "
            "PyTorch, one block at a time.",
        ),
        Hint(
            as_many_as_chunks,
            "The loop takes far more turns than there are blocks. x.chunk(k, dim) cuts k chunks, and x.split(size, "
            "dim) cuts chunks of that size.",
        ),
    ),
    call=lambda run: as_call("blocked_sum", run.tree["x"], dim=run.case.dim, block_size=run.case.block_size),
    fact=how_far,
    axis="other shapes, axes and block sizes, such as a last block that is shorter",
)
