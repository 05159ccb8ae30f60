"""Lab 00, second half: what is true of the warm-up, by PyTorch's own vector norm in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab00.warm_up import Activations
from labkit.oracles.calls import as_call
from labkit.oracles.hints import any_of
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance, Tree


def _true_rms(x: torch.Tensor, dim: int) -> torch.Tensor:
    """float64; the norm divided by the square root of the number of values."""
    return torch.linalg.vector_norm(x.double(), dim=dim) / math.sqrt(x.shape[dim])


def _expect(run: CaseRun[Activations]) -> Tree:
    return {"out": _true_rms(run.tree["x"], run.case.dim).to(run.tree["x"].dtype)}


def _tolerance(run: CaseRun[Activations]) -> Tolerance:
    """Two units in the last place of the dtype, and one of float32 for each term of a sum in float32.

    Of the two, one is for the rounding and one for a step in between. A chain of torch.hypot rounds at every term.
    """
    info, n_terms = torch.finfo(run.tree["x"].dtype), run.tree["x"].shape[run.case.dim]
    # Only float16 comes near its subnormals, which are all equally far apart.
    atol = info.smallest_normal * info.eps if info.dtype == "float16" else 0.0
    return Tolerance(atol=atol, rtol=2 * info.eps + n_terms * torch.finfo(torch.float32).eps)


def _equals(mistake: Callable[[torch.Tensor, int], torch.Tensor]) -> Callable[[CaseRun[Activations]], object]:
    """Whether the answer is what this mistake gives, up to the rounding of the dtype; CANNOT_TELL where the truth is
    as near.
    """

    def equals(run: CaseRun[Activations]) -> object:
        out, wrong = run.got["out"], mistake(run.tree["x"].double(), run.case.dim)
        if out.shape != wrong.shape:
            return False
        rtol = 4 * _tolerance(run).rtol
        true = _true_rms(run.tree["x"], run.case.dim)
        if not _near(out, wrong.to(out.dtype), rtol):
            return False
        return CANNOT_TELL if _near(wrong, true, rtol) else True

    return equals


def _near(a: torch.Tensor, b: torch.Tensor, rtol: float) -> bool:
    return torch.allclose(a.double(), b.double(), rtol=rtol, atol=1e-12)


def _divided_by_another_axis(run: CaseRun[Activations]) -> object:
    """The sum of the squares over the length of an axis that was not summed."""
    lengths = [n for n in run.tree["x"].shape if n != run.tree["x"].shape[run.case.dim]]
    return any_of(*(_equals(partial(_mean_over, n=n)) for n in lengths))(run)


def _mean_over(x: torch.Tensor, dim: int, n: int) -> torch.Tensor:
    """The root of the sum of the squares along `dim` divided by n."""
    return torch.linalg.vector_norm(x, dim=dim) / math.sqrt(n)


def _deviation(x: torch.Tensor, dim: int, correction: int) -> torch.Tensor:
    return x.std(dim, correction=correction)


def _in_words(run: CaseRun[Activations]) -> str:
    zeros = " with a row of zeros" if run.case.zero_row else ""
    faint = " with a row of small values" if run.case.faint_row else ""
    return as_call("rms", run.tree["x"], dim=run.case.dim) + zeros + faint


def _how_far_off(run: CaseRun[Activations]) -> str | None:
    """By which factors the values are off, where the truth is not zero."""
    out, true = run.got["out"].double(), _true_rms(run.tree["x"], run.case.dim)
    factors = (out / true)[true > 0]
    least, most = (f"{factor:.4g}" for factor in (factors.min().item(), factors.max().item()))
    between = least if least == most else f"between {least} and {most}"
    return None if least == most == "1" else f"The values of this case are {between} times the right ones."


def _held_up(run: CaseRun[Activations]) -> bool:
    """Something was added under the root, or nothing below a least value comes back."""
    out, true = run.got["out"].double(), _true_rms(run.tree["x"], run.case.dim)
    rtol = 4 * _tolerance(run).rtol
    # Where the truth is smallest, what was added is least hidden by rounding.
    excess, smallest = (out.square() - true.square()).flatten(), true.argmin()
    slack = rtol * (2 * out.square().flatten() + excess[smallest])
    is_added = excess[smallest] > 0 and bool(((excess - excess[smallest]).abs() <= slack).all())
    least = out.min()
    return is_added or (bool((least > true).any()) and _near(out, true.clamp(min=least), rtol))


def _left_the_range(run: CaseRun[Activations]) -> bool:
    """In float16, infinity where the truth is finite, or zero where it is not."""
    if run.tree["x"].dtype != torch.float16:
        return False
    out, true = run.got["out"], _true_rms(run.tree["x"], run.case.dim)
    return bool(out.isinf().any() or ((out == 0) & (true > 0)).any() or _squared_in_dtype(run))


def _squared_in_dtype(run: CaseRun[Activations]) -> bool:
    """Squares among the subnormals, or their mean, keep only a few bits."""
    out, x, dim = run.got["out"], run.tree["x"], run.case.dim
    rounded = (x.square().mean(dim).sqrt(), x.float().square().mean(dim).to(x.dtype).sqrt())
    return any(not torch.equal(one, run.expected["out"]) and torch.equal(out, one) for one in rounded)


WARM_UP = Oracle(
    id="00-warm-up",
    expect=_expect,
    judge=(inputs_untouched,),
    tolerance=_tolerance,
    call=_in_words,
    fact=_how_far_off,
    diagnose=(
        Hint(
            lambda run: run.got["out"].dtype != run.tree["x"].dtype,
            "The values may be right, but the dtype is not: the result should have the dtype of `x`, so convert it "
            "back as the last step.",
        ),
        Hint(
            lambda run: run.got["out"].ndim == 0 and run.tree["x"].ndim > 1,
            "This is one number for the whole tensor: `dim` is not used. Average along that axis only.",
        ),
        Hint(
            lambda run: run.got["out"].ndim == run.tree["x"].ndim and run.got["out"].shape[run.case.dim] == 1,
            "The averaged axis is still there with length 1 (`keepdim=True`); the result should not have it.",
        ),
        Hint(
            lambda run: run.got["out"].shape == run.tree["x"].shape,
            "The result has as many values as `x`: nothing was averaged. One value should remain for each row "
            "along `dim`.",
        ),
        Hint(
            lambda run: run.got["out"].ndim < run.tree["x"].ndim - 1,
            "More axes than `dim` were averaged: the result should have all the others.",
        ),
        Hint(
            lambda run: run.got["out"].shape != _true_rms(run.tree["x"], run.case.dim).shape,
            "Another axis than `dim` was averaged. A negative `dim` counts from the end: -1 is the last axis.",
        ),
        Hint(
            _left_the_range,
            "The squares leave the range of float16, or their sum does: its largest value is 65504, its smallest about "
            "6e-8. Convert to float32 before squaring, and back at the very end.",
        ),
        Hint(
            lambda run: (
                run.got["out"].isnan().any()
                and not run.got["out"][_true_rms(run.tree["x"], run.case.dim) > 0].isnan().any()
            ),
            "NaN where all values are zero, whose root-mean-square is 0: dividing by the largest value is 0/0 there.",
        ),
        Hint(
            _held_up,
            "Small values come out too large: something was added under the root, or small results are raised to a "
            "least value. Zeros have the root-mean-square 0.",
        ),
        Hint(
            _equals(lambda x, dim: x.square().mean(dim)),
            "This is the mean of the squares: the root is missing.",
        ),
        Hint(
            _equals(lambda x, dim: x.abs().mean(dim)),
            "This is the mean of the absolute values: the root was taken before the mean.",
        ),
        Hint(
            _equals(lambda x, dim: torch.linalg.vector_norm(x, dim=dim)),
            "This is the root of the sum of the squares: divide the sum by the number of values along `dim`.",
        ),
        Hint(
            _equals(lambda x, dim: torch.linalg.vector_norm(x, dim=dim) / math.sqrt(x.numel())),
            "The sum of the squares was divided by the number of all values of `x`: only `x.shape[dim]` of them are "
            "in one sum.",
        ),
        Hint(
            _equals(lambda x, dim: torch.linalg.vector_norm(x, dim=dim) / x.shape[dim]),
            "The root was divided by the number of values along `dim`: divide the sum under the root by it.",
        ),
        Hint(
            _equals(lambda x, dim: torch.linalg.vector_norm(x, dim=dim) / math.sqrt(x.shape[dim] - 1)),
            "The sum of the squares was divided by n - 1, as for a variance: a mean divides by n.",
        ),
        Hint(
            _divided_by_another_axis,
            "The sum of the squares was divided by the length of another axis; the axis that is averaged is `dim`, of "
            "length `x.shape[dim]`.",
        ),
        Hint(
            any_of(*(_equals(partial(_deviation, correction=correction)) for correction in (0, 1))),
            "This is the standard deviation, which subtracts the mean first; the root-mean-square does not.",
        ),
        Hint(
            _equals(lambda x, dim: x.mean(dim)),
            "This is the mean of the values: square them first, and take the root at the end.",
        ),
    ),
)
