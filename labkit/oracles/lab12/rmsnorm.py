"""Lab 12: what is true of RMSNorm and its gradients, and what the usual mistakes look like."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.compare import inputs_untouched
from labkit.exercises.lab12.rmsnorm import Norm
from labkit.exercises.lab12.shapes import dout_of, dtype_of
from labkit.oracles.kernels import SAFE, compiled, moved
from labkit.oracles.lab12.close import DOUT_HINT, keeps_at_most, near, takes_dout_as_contiguous
from labkit.spec import Hint, Oracle, Tolerance

PARTIAL = 4
"""For this many rows, the backward pass may write one partial sum of the weight's gradient."""


def expected(case: Norm, tree: dict) -> dict:
    """By PyTorch in float64, rounded at the end. What is kept is bounded by a property."""
    x, weight = (tree[name].double().requires_grad_() for name in ("x", "weight"))
    out = F.rms_norm(x, (case.n_cols,), weight, case.eps)
    dx, dweight = torch.autograd.grad(out, (x, weight), dout_of(case, tree).double())
    tensors = {"out": out.detach(), "dx": dx, "dweight": dweight}
    return {**{name: one.to(dtype_of(case)) for name, one in tensors.items()}, "kept_bytes": 0}


def tolerances(case: Norm, tree: dict) -> dict[str, Tolerance]:
    """float32 inside; a gradient is a difference of sums of a few hundred terms, so its error is not relative."""
    eps = torch.finfo(dtype_of(case)).eps
    close = Tolerance(rtol=max(2 * eps, 1e-4), atol=max(eps, 1e-4))
    return {"out": close, "dx": close, "dweight": close, "kept_bytes": Tolerance(atol=float("inf"), check_dtype=False)}


def parts(case: Norm, tree: dict) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, weight, dout and 1 / rms of each row, in float64."""
    x, weight = (tree[name].double() for name in ("x", "weight"))
    return x, weight, dout_of(case, tree).double(), (x.square().mean(-1, keepdim=True) + case.eps).rsqrt()


def is_rms_plus_eps(case: Norm, tree: dict, got: dict) -> bool:
    x, weight, _, _ = parts(case, tree)
    return near(case, got["out"], x / (x.square().mean(-1, keepdim=True).sqrt() + case.eps) * weight)


def has_no_eps(case: Norm, tree: dict, got: dict) -> bool:
    x, weight, _, _ = parts(case, tree)
    return near(case, got["out"], x * x.square().mean(-1, keepdim=True).rsqrt() * weight)


def is_layer_norm(case: Norm, tree: dict, got: dict) -> bool:
    x, weight, _, _ = parts(case, tree)
    return near(case, got["out"], F.layer_norm(x, (case.n_cols,), weight, None, case.eps))


def mean_of_the_block(case: Norm, tree: dict, got: dict) -> bool:
    """What is under the root is too small, by the same factor in every row."""
    x, weight, _, _ = parts(case, tree)
    under_root = (x * weight / got["out"].double()).square().median(-1).values - case.eps
    factors = under_root / x.square().mean(-1)
    return bool(factors.max() < 0.95 and factors.max() - factors.min() < 0.05)


def is_sum_for_mean(case: Norm, tree: dict, got: dict) -> bool:
    x, weight, _, _ = parts(case, tree)
    return near(case, got["out"], x * (x.square().sum(-1, keepdim=True) + case.eps).rsqrt() * weight)


def has_no_root(case: Norm, tree: dict, got: dict) -> bool:
    x, weight, _, scale = parts(case, tree)
    return near(case, got["out"], x * scale.square() * weight)


def forward_is_right(case: Norm, tree: dict, got: dict) -> bool:
    return near(case, got["out"], expected(case, tree)["out"])


def through_the_factor_alone(case: Norm, tree: dict, got: dict) -> bool:
    _, weight, dout, scale = parts(case, tree)
    return near(case, got["dx"], dout * weight * scale)


def weight_left_out(case: Norm, tree: dict, got: dict) -> bool:
    x, _, dout, scale = parts(case, tree)
    normal = x * scale
    return near(case, got["dx"], scale * (dout - normal * (dout * normal).mean(-1, keepdim=True)))


def sum_in_dx(case: Norm, tree: dict, got: dict) -> bool:
    x, weight, dout, scale = parts(case, tree)
    normal, dnormal = x * scale, dout * weight
    return near(case, got["dx"], scale * (dnormal - normal * (dnormal * normal).sum(-1, keepdim=True)))


def weight_times_weight(case: Norm, tree: dict, got: dict) -> bool:
    x, weight, dout, scale = parts(case, tree)
    return near(case, got["dweight"], (dout * weight * x * scale).sum(0))


def dweight_alone_is_wrong(case: Norm, tree: dict, got: dict) -> bool:
    right = expected(case, tree)
    return near(case, got["dx"], right["dx"]) and not near(case, got["dweight"], right["dweight"])


def weight_by_x(case: Norm, tree: dict, got: dict) -> bool:
    x, _, dout, _ = parts(case, tree)
    return near(case, got["dweight"], (dout * x).sum(0))


def partial_bytes(case: Norm) -> int:
    """The partial sums of the weight's gradient in float32, one for every few rows."""
    return 4 * math.ceil(case.n_rows / PARTIAL) * case.n_cols


def load_bytes(case: Norm, tree: dict) -> int:
    """x and the weight, then x, dout and the weight; the factor of each row, the partial sums, and what they make."""
    return 5 * case.n_bytes + case.copied_bytes + 4 * case.n_rows + partial_bytes(case) + 4 * case.n_cols


def store_bytes(case: Norm, tree: dict) -> int:
    """The two results, the factor of each row, and partial sums; their sum, zeros to begin it with, and its cast."""
    return 2 * case.n_bytes + case.copied_bytes + 4 * case.n_rows + partial_bytes(case) + 12 * case.n_cols


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
        *moved(
            load=load_bytes,
            store=store_bytes,
            atomic=lambda case, tree: partial_bytes(case),
            launches=3,
        ),
        *compiled(),
    ),
    diagnose=(
        Hint(is_layer_norm, "This is layer norm: RMSNorm does not subtract the mean."),
        Hint(
            lambda case, tree, got: not forward_is_right(case, tree, got) and has_no_eps(case, tree, got),
            "eps is missing: add it to the mean of the squares, under the root.",
        ),
        Hint(
            lambda case, tree, got: not forward_is_right(case, tree, got) and is_rms_plus_eps(case, tree, got),
            "eps belongs under the root: 1 / sqrt(mean + eps), not 1 / (sqrt(mean) + eps).",
        ),
        Hint(
            lambda case, tree, got: not forward_is_right(case, tree, got) and mean_of_the_block(case, tree, got),
            "The mean of the squares is too small by the same factor everywhere: divide their sum by n_cols, not by "
            "BLOCK_SIZE.",
        ),
        Hint(is_sum_for_mean, "The squares are added up and not averaged: divide their sum by n_cols."),
        Hint(has_no_root, "The root is missing: the factor of a row is 1 / sqrt(mean + eps)."),
        Hint(lambda case, tree, got: takes_dout_as_contiguous(case, tree, got, "dx", expected), DOUT_HINT),
        Hint(
            lambda case, tree, got: forward_is_right(case, tree, got) and through_the_factor_alone(case, tree, got),
            "dx has one term too few. Every x of a row is also in the row's root mean square, and through it in all "
            "outputs of the row.",
        ),
        Hint(
            lambda case, tree, got: forward_is_right(case, tree, got) and weight_left_out(case, tree, got),
            "dx lacks the weight: what comes back to the normalised row is dout times the weight.",
        ),
        Hint(
            lambda case, tree, got: forward_is_right(case, tree, got) and weight_by_x(case, tree, got),
            "The weight multiplies the normalised row, so its gradient sums up dout times x / rms, not dout times x.",
        ),
        Hint(
            lambda case, tree, got: forward_is_right(case, tree, got) and sum_in_dx(case, tree, got),
            "In dx, the sum of g times the normalised row is not divided by n_cols: the formula has its mean.",
        ),
        Hint(
            lambda case, tree, got: forward_is_right(case, tree, got) and weight_times_weight(case, tree, got),
            "The weight's gradient has the weight as a factor: it is the sum of dout times the normalised row, and g "
            "belongs to dx alone.",
        ),
        Hint(
            lambda case, tree, got: forward_is_right(case, tree, got) and dweight_alone_is_wrong(case, tree, got),
            "out and dx are right, and dweight is not. Each program adds up dout times the normalised row over all of "
            "its rows, in float32, and stores that in a row of its own; the result is the sum of all of these rows.",
        ),
    ),
)
