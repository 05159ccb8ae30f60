"""Lab 12: what the usual mistakes of RMSNorm look like in its result and its gradients."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import compare
from labkit.exercises.lab12.rmsnorm import Norm
from labkit.exercises.lab12.shapes import dout_of
from labkit.oracles.lab12.close import (
    ends_unwritten,
    near,
)
from labkit.oracles.lab12.rmsnorm_values import is_right, tolerances
from labkit.spec import CaseRun


def parts(run: CaseRun[Norm]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, weight, dout and 1 / rms of each row, in float64."""
    x, weight = (run.tree[name].double() for name in ("x", "weight"))
    return x, weight, dout_of(run.case, run.tree).double(), (x.square().mean(-1, keepdim=True) + run.case.eps).rsqrt()


def block_of(case: Norm) -> int:
    """The length of the block that holds a row."""
    return 1 << (case.n_cols - 1).bit_length()


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


def is_eps_for_each_element(run: CaseRun[Norm]) -> bool:
    """Added to every square, those of the lanes past the row's end included."""
    x, weight, *_ = parts(run)
    wrong = run.case.eps * block_of(run.case) / run.case.n_cols
    return near(run.case, run.got["out"], x * (x.square().mean(-1, keepdim=True) + wrong).rsqrt() * weight)


def is_mean_outside_the_root(run: CaseRun[Norm]) -> bool:
    x, weight, *_ = parts(run)
    rms = (x.square().sum(-1, keepdim=True) + run.case.eps).sqrt() / run.case.n_cols
    return near(run.case, run.got["out"], x / rms * weight)


def rows_a_block_apart(run: CaseRun[Norm]) -> bool:
    """The second row's x, its result, or both are taken to lie BLOCK_SIZE elements behind those of the first row.

    Where a row is as long as a block, that is right.
    """
    x, weight, *_ = parts(run)
    n_cols, block = run.case.n_cols, block_of(run.case)
    if block == n_cols:
        return False
    second = x.reshape(-1)[block : block + n_cols]
    apart = second * (second.square().mean() + run.case.eps).rsqrt() * weight
    out = run.got["out"].reshape(-1)
    return any(
        near(run.case, out[at : at + n_cols], row)
        for at, row in ((n_cols, apart), (block, apart), (block, run.expected["out"][1]))
    )


def weight_of_the_row(run: CaseRun[Norm]) -> bool:
    """Each row is multiplied by one number, the weight of the row's own number."""
    x, weight, _, scale = parts(run)
    n = min(run.case.n_rows, run.case.n_cols)
    return near(run.case, run.got["out"][:n], (x * scale)[:n] * weight[:n, None])


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
    """The gradients are wrong, and what comes of a factor that was kept in float16. One of both may be right enough."""
    x, weight, dout, scale = parts(run)
    if run.case.dtype != "float16" or not forward_is_right(run):
        return False
    scale = scale.half().double()
    normal, dnormal = x * scale, dout * weight
    rounded = {
        "dx": scale * (dnormal - normal * (dnormal * normal).mean(-1, keepdim=True)),
        "dweight": (dout * normal).sum(0),
    }
    close = tolerances(run)
    return not all(is_right(run, name) for name in rounded) and all(
        compare(gradient.half(), run.got[name], close[name]) is None for name, gradient in rounded.items()
    )


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


def rows_left_to_nobody(run: CaseRun[Norm]) -> bool:
    """Some rows of dx are not stored, and others are by several programs."""
    return run.measured["races"] > 0 and ends_early(run)


def with_factor(run: CaseRun[Norm], factor: Tensor) -> bool:
    """Both gradients are wrong, and dx is what comes of this factor of the rows in the backward pass.

    The last row is left out: its x are so large that a wrong dx may be beyond float16.
    """
    x, weight, dout, _ = parts(run)
    normal, dnormal = x * factor, dout * weight
    wrong = (factor * (dnormal - normal * (dnormal * normal).mean(-1, keepdim=True)))[:-1]
    atol = 1e-3 * float(wrong.abs().max())
    return gradients_are_wrong(run) and torch.allclose(run.got["dx"][:-1].double(), wrong, rtol=1e-2, atol=atol)


def has_rms_for_r(run: CaseRun[Norm]) -> bool:
    return with_factor(run, 1 / parts(run)[3])


def has_r_without_eps(run: CaseRun[Norm]) -> bool:
    return with_factor(run, parts(run)[0].square().mean(-1, keepdim=True).rsqrt())


def gradients_are_wrong(run: CaseRun[Norm]) -> bool:
    """The result is right, and neither gradient is."""
    return forward_is_right(run) and not (is_right(run, "dx") or is_right(run, "dweight"))


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
