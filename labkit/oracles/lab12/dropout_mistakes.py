"""Lab 12: what the usual mistakes of dropout in a fused kernel look like in its results."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab12.bias_gelu_dropout import Dropped
from labkit.exercises.lab12.shapes import dout_of
from labkit.oracles.lab12.close import in_memory_order
from labkit.oracles.lab12.dropout_properties import (
    CLOSE,
    activated,
    gradients_are_right,
    kept,
    slopes,
    values_are_right,
)
from labkit.spec import CaseRun
from labkit.unwritten import unwritten


def is_value(got: dict, values: Tensor) -> Tensor:
    """Of each element of out, whether it is this, more or less."""
    out = got["out"].double()
    return torch.isclose(out, values.expand(out.shape), rtol=1e-3, atol=1e-4)


def is_either(run: CaseRun, kept_values: Tensor) -> Tensor:
    """Of each element of out, whether it is what it should be if kept, or y."""
    return is_value(run.got, kept_values) | is_value(run.got, run.tree["y"].double())


def either(run: CaseRun, kept_values: Tensor, dropped: Tensor | None = None) -> bool:
    """Nearly every element of out is one of two values, and both occur."""
    one, other = (
        is_value(run.got, kept_values),
        is_value(run.got, run.tree["y"].double() if dropped is None else dropped),
    )
    return bool((one | other).double().mean() > 0.99 and one.any() and other.any())


def unscaled(run: CaseRun[Dropped]) -> bool:
    """Divided by nothing, or by p, which is the same as 1 - p at one half; or multiplied by either."""
    if values_are_right(run) is None:
        return False
    y, values, p = run.tree["y"].double(), activated(run.tree), run.case.p
    return any(either(run, y + wrong) for wrong in (values, values / p, values * (1 - p), values * p))


def y_scaled(run: CaseRun[Dropped]) -> bool:
    """The whole result is divided by 1 - p, and with it the y of what was dropped."""
    y, share = run.tree["y"].double(), 1 - run.case.p
    return any(either(run, (y + one) / share, y / share) for one in (activated(run.tree), activated(run.tree) / share))


def bias_after(run: CaseRun[Dropped]) -> bool:
    """gelu(x) + bias, the bias dropped with the rest or not."""
    tree, share = run.tree, 1 - run.case.p
    y, bias, values = tree["y"].double(), tree["bias"].double(), F.gelu(tree["x"].double())
    return either(run, y + (values + bias) / share) or either(run, y + bias + values / share, y + bias)


def bias_elsewhere(run: CaseRun[Dropped]) -> bool:
    """No bias, or that of the row's number, of offs % n_rows or of the place in a block; or the first row has the right
    ones, and the last one has not."""
    case, tree = run.case, run.tree
    offs = torch.arange(case.n_elements).reshape(case.n_rows, case.n_cols)
    indices = (offs // case.n_cols, offs % case.n_rows, *(offs % 2**power for power in range(6, 13)))
    biases = (torch.zeros(1), *(tree["bias"][at % case.n_cols] for at in indices))
    x = tree["x"].double()
    if any(either(run, tree["y"].double() + F.gelu(x + bias) / (1 - case.p)) for bias in biases):
        return values_are_right(run) is not None
    right = is_either(run, tree["y"].double() + activated(tree) / (1 - case.p))
    return bool(right[0].all() and right[-1].double().mean() < 0.9)


def end_not_stored(run: CaseRun[Dropped]) -> bool:
    """From some element on, nothing was stored."""
    empty = unwritten(run.got["out"]).reshape(-1)
    first = int(empty.byte().argmax())
    return bool(empty.any() and empty[first:].all())


def dropped_not_stored(run: CaseRun[Dropped]) -> bool:
    """What was stored is right, and the share of the rest is about that of what is dropped."""
    empty = unwritten(run.got["out"])
    fits = is_value(run.got, run.tree["y"].double() + activated(run.tree) / (1 - run.case.p))
    return bool((empty | fits).all()) and abs(float(empty.double().mean()) - run.case.p) < 0.1


def drops_y_too(run: CaseRun[Dropped]) -> bool:
    sums = run.tree["y"].double() + activated(run.tree)
    return any(either(run, one, torch.zeros((), dtype=torch.float64)) for one in (sums / (1 - run.case.p), sums))


def approximate(run: CaseRun[Dropped]) -> bool:
    """Close to the right values, but not right: GELU by tanh is off by up to 5e-4."""
    right = activated(run.tree, "tanh") / (1 - run.case.p)
    return either(run, run.tree["y"].double() + right)


def lacks_y(run: CaseRun[Dropped]) -> bool:
    return either(run, activated(run.tree) / (1 - run.case.p), torch.zeros((), dtype=torch.float64))


def other_activation(run: CaseRun[Dropped]) -> bool:
    """x times the sigmoid of x or 1.702 x, ReLU, erf without the root of 2, or a part of GELU alone."""
    at = run.tree["x"].double() + run.tree["bias"].double()
    erf = torch.erf(at / 2**0.5)
    wrong = (
        *(at * torch.sigmoid(factor * at) for factor in (1, 1.702)),
        F.relu(at),
        at * (1 + torch.erf(at)) / 2,
        at * (1 + erf),
        at * erf / 2,
        (1 + erf) / 2,
    )
    return any(either(run, run.tree["y"].double() + one / (1 - run.case.p)) for one in wrong)


def dropped_before(run: CaseRun[Dropped]) -> bool:
    inside = F.gelu((run.tree["x"].double() + run.tree["bias"].double()) / (1 - run.case.p))
    return either(run, run.tree["y"].double() + inside)


def gradient_is_to_blame(run: CaseRun[Dropped]) -> bool:
    """Whether the forward pass is right and a gradient is not."""
    return values_are_right(run) is None and gradients_are_right(run) is not None


def other_mask(run: CaseRun[Dropped]) -> bool:
    """Every element of dx is 0 or what a kept one has, and not where the forward pass had it."""
    if not gradient_is_to_blame(run):
        return False
    full = dout_of(run.case, run.tree).double() * slopes(run.tree) / (1 - run.case.p)
    dx = run.got["dx"].double()
    fits = torch.isclose(dx, full, rtol=1e-3, atol=1e-5) | (dx.abs() < 1e-6)
    is_kept, is_decided = kept(run, run.got["out"])
    return bool(fits.all() and ((dx.abs() > 1e-6) != is_kept)[is_decided].double().mean() > 0.05)


def dout_as_contiguous(run: CaseRun[Dropped]) -> bool:
    is_kept, is_decided = kept(run, run.got["out"])
    if not run.case.dout_by_columns or not gradient_is_to_blame(run):
        return False
    wrong = is_kept * dout_of(run.case, in_memory_order(run)).double() * slopes(run.tree) / (1 - run.case.p)
    return torch.allclose(run.got["dx"].double()[is_decided], wrong[is_decided], **CLOSE)


def one_term_of_the_slope(run: CaseRun[Dropped]) -> bool:
    """The derivative of a * phi(a) lacks one of its terms, or the factor a of the second one."""
    at = run.tree["x"].double() + run.tree["bias"].double()
    phi, density = (1 + torch.erf(at / 2**0.5)) / 2, torch.exp(-at.square() / 2) / (2 * torch.pi) ** 0.5
    is_kept, is_decided = kept(run, run.got["out"])
    incoming = is_kept * dout_of(run.case, run.tree).double() / (1 - run.case.p)
    wrong = (incoming * one for one in (phi, at * density, phi + density, phi - at * density))
    dx = run.got["dx"].double()[is_decided]
    return gradient_is_to_blame(run) and any(torch.allclose(dx, one[is_decided], **CLOSE) for one in wrong)


def dx_unscaled(run: CaseRun[Dropped]) -> bool:
    is_kept, is_decided = kept(run, run.got["out"])
    return gradient_is_to_blame(run) and torch.allclose(
        run.got["dx"].double()[is_decided],
        (is_kept * dout_of(run.case, run.tree).double() * slopes(run.tree))[is_decided],
        **CLOSE,
    )
