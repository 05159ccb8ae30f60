"""Lab 12: what is true of RMSNorm and its gradients, and what the usual mistakes look like."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab12.rmsnorm import Norm
from labkit.exercises.lab12.shapes import dout_of, dtype_of
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import NO_OTHER, SAFE, at_full_size, compiled, moved
from labkit.oracles.lab12.close import (
    DOUT_HINT,
    LAID_OUT_HINT,
    dout_in_words,
    ends_unwritten,
    keeps_at_most,
    laid_out_like_dout,
    near,
    takes_dout_as_contiguous,
)
from labkit.spec import Budget, CaseRun, Hint, Oracle, Tolerance

PARTIAL = 4
"""For this many rows, the backward pass may write one partial sum of the weight's gradient."""


def expected(run: CaseRun[Norm]) -> dict:
    """By PyTorch in float64, rounded at the end. What is kept is bounded by a property."""
    case = run.case
    x, weight = (run.tree[name].double().requires_grad_() for name in ("x", "weight"))
    out = F.rms_norm(x, (case.n_cols,), weight, case.eps)
    dx, dweight = torch.autograd.grad(out, (x, weight), dout_of(case, run.tree).double())
    tensors = {"out": out.detach(), "dx": dx, "dweight": dweight}
    return {**{name: one.to(dtype_of(case)) for name, one in tensors.items()}, "kept_bytes": 0}


def tolerances(run: CaseRun[Norm]) -> dict[str, Tolerance]:
    """float32 inside, rounded once; a gradient is a difference of sums of hundreds, so its error is not relative."""
    close = Tolerance(rtol=max(1.01 * torch.finfo(dtype_of(run.case)).eps, 1e-4), atol=1e-4)
    return {"out": close, "dx": close, "dweight": close, "kept_bytes": Tolerance(atol=float("inf"), check_dtype=False)}


def parts(run: CaseRun[Norm]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, weight, dout and 1 / rms of each row, in float64."""
    x, weight = (run.tree[name].double() for name in ("x", "weight"))
    return x, weight, dout_of(run.case, run.tree).double(), (x.square().mean(-1, keepdim=True) + run.case.eps).rsqrt()


def is_rms_plus_eps(run: CaseRun[Norm]) -> bool:
    x, weight, _, _ = parts(run)
    return near(run.case, run.got["out"], x / (x.square().mean(-1, keepdim=True).sqrt() + run.case.eps) * weight)


def is_eps_in_the_sum(run: CaseRun[Norm]) -> bool:
    x, weight, *_ = parts(run)
    wrong = ((x.square().sum(-1, keepdim=True) + run.case.eps) / run.case.n_cols).rsqrt()
    return near(run.case, run.got["out"], x * wrong * weight)


def has_no_eps(run: CaseRun[Norm]) -> bool:
    x, weight, _, _ = parts(run)
    return near(run.case, run.got["out"], x * x.square().mean(-1, keepdim=True).rsqrt() * weight)


def is_layer_norm(run: CaseRun[Norm]) -> bool:
    x, weight, _, _ = parts(run)
    return near(run.case, run.got["out"], F.layer_norm(x, (run.case.n_cols,), weight, None, run.case.eps))


def mean_of_the_block(run: CaseRun[Norm]) -> bool:
    """What is under the root is too small, by the same factor in every row."""
    x, weight, _, _ = parts(run)
    under_root = (x * weight / run.got["out"].double()).square().median(-1).values - run.case.eps
    factors = under_root / x.square().mean(-1)
    return bool(factors.max() < 0.95 and factors.max() - factors.min() < 0.05)


def is_sum_for_mean(run: CaseRun[Norm]) -> bool:
    x, weight, _, _ = parts(run)
    return near(run.case, run.got["out"], x * (x.square().sum(-1, keepdim=True) + run.case.eps).rsqrt() * weight)


def has_no_weight(run: CaseRun[Norm]) -> bool:
    x, _, _, scale = parts(run)
    return near(run.case, run.got["out"], x * scale)


def factor_rounded(run: CaseRun[Norm]) -> bool:
    """dx is what comes of a factor that was kept in float16."""
    x, weight, dout, scale = parts(run)
    if run.case.dtype != "float16" or not forward_is_right(run):
        return False
    scale = scale.half().double()
    normal, dnormal = x * scale, dout * weight
    dx = scale * (dnormal - normal * (dnormal * normal).mean(-1, keepdim=True))
    return compare(dx.half(), run.got["dx"], tolerances(run)["dx"]) is None


def has_no_root(run: CaseRun[Norm]) -> bool:
    x, weight, _, scale = parts(run)
    return near(run.case, run.got["out"], x * scale.square() * weight)


def forward_is_right(run: CaseRun[Norm]) -> bool:
    return near(run.case, run.got["out"], run.expected["out"])


def through_the_factor_alone(run: CaseRun[Norm]) -> bool:
    _, weight, dout, scale = parts(run)
    return near(run.case, run.got["dx"], dout * weight * scale)


def weight_left_out(run: CaseRun[Norm]) -> bool:
    x, _, dout, scale = parts(run)
    normal = x * scale
    return near(run.case, run.got["dx"], scale * (dout - normal * (dout * normal).mean(-1, keepdim=True)))


def sum_in_dx(run: CaseRun[Norm]) -> bool:
    x, weight, dout, scale = parts(run)
    normal, dnormal = x * scale, dout * weight
    return near(run.case, run.got["dx"], scale * (dnormal - normal * (dnormal * normal).sum(-1, keepdim=True)))


def weight_times_weight(run: CaseRun[Norm]) -> bool:
    x, weight, dout, scale = parts(run)
    return near(run.case, run.got["dweight"], (dout * weight * x * scale).sum(0))


def is_right(run: CaseRun[Norm], name: str) -> bool:
    return compare(run.expected[name], run.got[name], tolerances(run)[name]) is None


def dweight_alone_is_wrong(run: CaseRun[Norm]) -> bool:
    return is_right(run, "dx") and not is_right(run, "dweight")


def ends_early(run: CaseRun[Norm]) -> bool:
    right = run.expected
    return any(ends_unwritten(run.got[name], right[name]) for name in ("out", "dx"))


def squares_overflow(run: CaseRun[Norm]) -> bool:
    """float16, and the row alone is 0 or no number whose squares are beyond its range."""
    last = run.got["out"][-1].double()
    return (
        run.case.dtype == "float16"
        and bool((last.nan_to_num(0, 0, 0) == 0).all())
        and near(run.case, run.got["out"][:-1], run.expected["out"][:-1])
    )


def of_a_later_call(run: CaseRun[Norm]) -> bool:
    """dx is that of the call in between, altogether or by the factor of its rows."""
    x, weight, dout, _ = parts(run)
    other, _, _, scale = parts(replace(run, tree={**run.tree, "x": run.tree["other"]}))

    def dx_of(rows: Tensor) -> Tensor:
        normal, dnormal = rows * scale, dout * weight
        return scale * (dnormal - normal * (dnormal * normal).mean(-1, keepdim=True))

    return any(near(run.case, run.got["dx"][:-1], dx_of(rows)[:-1]) for rows in (x, other))


def dx_alone_is_wrong(run: CaseRun[Norm]) -> bool:
    wrong = not near(run.case, run.got["dx"], run.expected["dx"])
    return wrong and bool(run.got["dx"].isfinite().all()) and is_right(run, "dweight")


def weight_by_x(run: CaseRun[Norm]) -> bool:
    x, _, dout, _ = parts(run)
    return near(run.case, run.got["dweight"], (dout * x).sum(0))


def partial_bytes(case: Norm) -> int:
    """The partial sums of the weight's gradient in float32, one for every few rows."""
    return 4 * math.ceil(case.n_rows / PARTIAL) * case.n_cols


def load_bytes(run: CaseRun[Norm]) -> int:
    """x and the weight, twice; then x, dout and the weight, factors of rows, the partial sums, and what they make."""
    case = run.case
    return 7 * case.n_bytes + case.copied_bytes + 4 * case.n_rows + partial_bytes(case) + 4 * case.n_cols


def store_bytes(run: CaseRun[Norm]) -> int:
    """Two results and dx, the factors of rows, and partial sums; their sum, zeros to begin it with, and its cast."""
    case = run.case
    return 3 * case.n_bytes + case.copied_bytes + 8 * case.n_rows + partial_bytes(case) + 12 * case.n_cols


def moved_at_most() -> tuple[Budget, ...]:
    """Twice forward and once backward."""
    budgets = moved(load=load_bytes, store=store_bytes, atomic=lambda run: partial_bytes(run.case), launches=4)
    hints = {
        "load_bytes": "More is read than x and the weight in each pass, dout, and a partial sum for every 4 rows. Let "
        "each program of the backward pass take 4 rows or more: it loads the weight once and stores one partial sum.",
        "store_bytes": "More is written than the results, a number for each row, and a partial sum for every 4 rows. "
        "What a kernel fills needs no zeros first: torch.empty.",
    }
    return tuple(replace(one, hint=hints.get(one.name, one.hint)) for one in budgets)


RMSNORM = Oracle(
    id="12-rmsnorm",
    expect=expected,
    tolerance=tolerances,
    judge=(
        inputs_untouched,
        keeps_at_most(
            lambda case: 4 * case.n_rows,
            "Keep x, which is there anyway, and one float32 for each row. x times this number is the normalised row; "
            "compute it again in the backward pass.",
        ),
    ),
    budgets=(
        *SAFE,
        *moved_at_most(),
        *compiled(),
    ),
    full_size=at_full_size(),
    call=lambda run: (
        as_call("rmsnorm", *(run.tree[name] for name in ("x", "weight")), eps=run.case.eps) + dout_in_words(run.case)
    ),
    diagnose=(
        NO_OTHER,
        Hint(
            squares_overflow,
            "The square of a number from 256 on overflows in float16. Convert what you load with .to(tl.float32) "
            "before you square it.",
        ),
        Hint(
            ends_early,
            "The last rows are never stored: there are too few programs for them. Round up, with triton.cdiv.",
        ),
        Hint(is_layer_norm, "This is layer norm: RMSNorm does not subtract the mean."),
        Hint(
            lambda run: not forward_is_right(run) and has_no_eps(run),
            "eps is missing: add it to the mean of the squares, under the root.",
        ),
        Hint(
            lambda run: not forward_is_right(run) and is_eps_in_the_sum(run),
            "eps was added to the sum of the squares, and divided by n_cols with it: add it to their mean.",
        ),
        Hint(
            lambda run: not forward_is_right(run) and is_rms_plus_eps(run),
            "eps belongs under the root: 1 / sqrt(mean + eps), not 1 / (sqrt(mean) + eps).",
        ),
        Hint(
            lambda run: not forward_is_right(run) and mean_of_the_block(run),
            "The mean of the squares is too small by the same factor everywhere: divide their sum by n_cols, not by "
            "BLOCK_SIZE.",
        ),
        Hint(is_sum_for_mean, "The squares are added up and not averaged: divide their sum by n_cols."),
        Hint(
            has_no_weight,
            "The result is not multiplied by the weight: each element of the normalised row has its own.",
        ),
        Hint(
            factor_rounded,
            "dx is off because r was rounded to float16 on its way to the backward pass. It has to be kept in float32, "
            "one number for each row: torch.empty(n_rows, dtype=torch.float32).",
        ),
        Hint(has_no_root, "The root is missing: the factor of a row is 1 / sqrt(mean + eps)."),
        Hint(lambda run: laid_out_like_dout(run, "dx"), LAID_OUT_HINT),
        Hint(lambda run: takes_dout_as_contiguous(run, "dx", expected), DOUT_HINT),
        Hint(
            lambda run: forward_is_right(run) and of_a_later_call(run),
            "dx is that of a later call. Keep tensors on ctx, which each call has for itself, not on the class or in a "
            "global variable.",
        ),
        Hint(
            lambda run: forward_is_right(run) and through_the_factor_alone(run),
            "dx has one term too few. Every x of a row is also in the row's root mean square, and through it in all "
            "outputs of the row.",
        ),
        Hint(
            lambda run: forward_is_right(run) and weight_left_out(run),
            "dx lacks the weight: what comes back to the normalised row is dout times the weight.",
        ),
        Hint(
            lambda run: forward_is_right(run) and weight_by_x(run),
            "The weight multiplies the normalised row, so its gradient sums up dout times x / rms, not dout times x.",
        ),
        Hint(
            lambda run: forward_is_right(run) and sum_in_dx(run),
            "In dx, the sum of g times the normalised row is not divided by n_cols: the formula has its mean.",
        ),
        Hint(
            lambda run: forward_is_right(run) and weight_times_weight(run),
            "The weight's gradient has the weight as a factor: it is the sum of dout times the normalised row, and g "
            "belongs to dx alone.",
        ),
        Hint(
            lambda run: forward_is_right(run) and dweight_alone_is_wrong(run),
            "out and dx are right, and dweight is not. Each program adds up dout times the normalised row over all of "
            "its rows, in float32, and stores that in a row of its own; the result is the sum of all of these rows.",
        ),
        Hint(
            lambda run: forward_is_right(run) and dx_alone_is_wrong(run),
            "out and dweight are right, and dx is not. With g = dout * weight it is r * (g - normal * mean), where "
            "mean is that of g * normal over the n_cols elements of the row.",
        ),
    ),
)
