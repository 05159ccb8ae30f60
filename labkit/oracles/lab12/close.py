"""Lab 12: how close a kernel's results have to be, by dtype, and small questions that several hints ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from labkit.exercises.lab12.shapes import Graded, Rows, Vector, dtype_of
from labkit.spec import CaseRun, Tolerance, Tree
from labkit.unwritten import unwritten


def rounded_once(run: CaseRun[Rows]) -> Tolerance:
    """Computed in float32 and rounded to the dtype at the end; the least subnormals of float16 come on top.

    4e-5: the logarithm of a sum of exponentials, added to a maximum of 256 to 512, is rounded by up to 1.5e-5.
    """
    eps = torch.finfo(dtype_of(run.case)).eps
    return Tolerance(rtol=max(1.01 * eps, 4e-5), atol=max(eps / 1000, 1e-6))


ROUNDED = (
    "The values are nearly right, but rounded on the way. Convert what you load with .to(tl.float32), compute, and let "
    "the store round once."
)
TAKES_FLOAT32 = {
    "Expected dtype ['fp32', 'fp64']": "tl.exp, tl.sigmoid, tl.sqrt and the like take float32: convert what you load "
    "with .to(tl.float32) first."
}
"""The hint on what Triton says of such a function of a float16 block."""
MOST_OFF = 0.05
"""Share of elements that may be one float16 beside the right one: in float32, it is one in thousands."""


def computed_in_float32(*names: str) -> Callable[[CaseRun], str | None]:
    """The property that float16 was rounded once: nearly every element is the float16 next to the true value, where of
    those rounded three times a third is not."""

    def holds(run: CaseRun) -> str | None:
        if run.case.dtype != "float16":
            return None
        for name in names:
            off = float((run.got[name] != run.expected[name]).double().mean())
            if off > MOST_OFF:
                return f"{off:.0%} of the elements of {name} are not the float16 numbers next to the true values"
        return None

    holds.hint = ROUNDED
    return holds


def near(case: Vector | Rows, got: Tensor, expected: Tensor) -> bool:
    """Whether a result is this (wrong) one, more or less."""
    rtol = max(10 * torch.finfo(dtype_of(case)).eps, 1e-3)
    return torch.allclose(got.double(), expected.double(), rtol=rtol, atol=rtol)


def in_memory_order(run: CaseRun[Graded]) -> Tree:
    """The inputs as a kernel sees them that takes a transposed gradient for a contiguous one."""
    return {**run.tree, "dout": run.tree["dout"].reshape(run.case.n_rows, run.case.n_cols).t().contiguous()}


def takes_dout_as_contiguous(run: CaseRun[Graded], name: str, expected: Callable) -> bool:
    """Whether the gradient `name` is the one that such a kernel makes."""
    if not run.case.dout_by_columns:
        return False
    return near(run.case, run.got[name], expected(replace(run, tree=in_memory_order(run)))[name])


DOUT_HINT = (
    "The incoming gradient need not be contiguous, and here it is transposed: dout.contiguous() puts it in order."
)


def laid_out_like_dout(run: CaseRun[Graded], name: str) -> bool:
    """Whether a gradient is right in memory order and has the strides of a transposed dout."""
    if not run.case.dout_by_columns:
        return False
    in_memory = run.got[name].t().contiguous().reshape(run.case.n_rows, run.case.n_cols)
    return near(run.case, in_memory, run.expected[name])


LAID_OUT_HINT = (
    "torch.empty_like copies the strides of dout, and here dout is transposed. Make a gradient like the input that it "
    "belongs to, which is contiguous."
)


def of_autograd(returned: str) -> Mapping[str, str]:
    """What autograd says of a Function that it cannot use, with the hints on it.

    returned: what backward should return, in words: "the gradients of gate and up".
    """
    in_order = f"backward returns {returned}: one value for each argument of forward after ctx, in their order"
    return {
        "incorrect number of gradients": f"{in_order}.",
        "invalid gradient at index": f"{in_order}, where index 0 is the first. A gradient has the shape of the "
        "input that it belongs to.",
        "not have been used in the graph": "No gradient comes back to one of the inputs: backward returns None in its "
        f"place, or it was detached before the Function got it. {in_order}.",
        "does not require grad": "Autograd does not know where the result comes from. Call the Function by its method "
        "apply, which calls forward and notes that backward belongs to the result.",
    }


def fills_first(run: CaseRun[Vector | Rows]) -> bool:
    """Nothing is wrong but what is moved, and PyTorch has filled a tensor that a kernel stores to."""
    faults = any(run.measured[name] for name in ("computed_by_torch", "out_of_bounds", "races", "undefined"))
    right = all(near(run.case, run.got[name], one) for name, one in run.expected.items() if isinstance(one, Tensor))
    lines = run.held.get("store_bytes", ())
    return right and not faults and any(line.startswith(("torch.zero", "torch.full", "torch.ones")) for line in lines)


FILLED_HINT = (
    "torch.zeros writes every element, and the kernel then writes it again. Make what a kernel fills with torch.empty."
)


def dout_in_words(case: Graded) -> str:
    """What to add to a call of a case whose incoming gradient is out of the ordinary."""
    return ", then backward with a transposed dout" if case.dout_by_columns else ""


def only_the_beginning(case: Rows, got: Tensor, expected: Tensor) -> bool:
    """The elements up to some place are right, and those behind it are not: never stored, or most of them wrong."""
    tolerance = max(10 * torch.finfo(dtype_of(case)).eps, 1e-3)
    right = torch.isclose(got.double(), expected.double(), rtol=tolerance, atol=tolerance).reshape(-1).double()
    first = int(right.argmin())
    if first > 0 and bool(unwritten(got.reshape(-1)[first:]).all()):
        return True
    return first >= right.numel() / 8 and bool(right[first:].mean() < 0.5)


def ends_unwritten(got: Tensor, expected: Tensor) -> bool:
    """The first rows, one or more, are right, and nothing was stored behind them."""
    written = ~unwritten(got).all(-1)
    n_written = int(written.sum())
    return (
        0 < n_written < len(got)
        and bool(written[:n_written].all())
        and torch.allclose(got[:n_written].double(), expected[:n_written].double(), rtol=1e-2, atol=1e-3)
    )


def keeps_at_most(limit_bytes: Callable[[Rows], int], hint: str) -> Callable[[CaseRun], str | None]:
    """The property that ctx holds no more than this beside the inputs."""

    def holds(run: CaseRun) -> str | None:
        kept, limit = run.got["kept_bytes"], limit_bytes(run.case)
        if kept <= limit:
            return None
        return f"{kept:,} bytes are kept for the backward pass beside the inputs, where {limit:,} suffice"

    holds.hint = hint
    return holds
