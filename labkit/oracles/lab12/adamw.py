"""Lab 12: what is true of a step of AdamW, and what the usual mistakes look like."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labkit.exercises.lab12.adamw import Step
from labkit.oracles.kernels import SAFE, compiled, moved
from labkit.spec import Hint, Observation, Oracle, Tolerance
from labkit.tree import same

LATE = 10**6
"""A step so late that the correction of the bias is over."""


def by_torch(
    case: Step,
    tree: dict,
    kind: type[torch.optim.Optimizer] = torch.optim.AdamW,
    step: int | None = None,
    weight_decay: float | None = None,
) -> dict[str, Tensor]:
    """The step by an optimizer of PyTorch's, in float64, rounded at the end."""
    param = torch.nn.Parameter(tree["param"].double())
    decay = case.weight_decay if weight_decay is None else weight_decay
    optimizer = kind([param], case.lr, (case.beta1, case.beta2), case.eps, decay)
    moments = {name: tree[name].double() for name in ("exp_avg", "exp_avg_sq")}
    optimizer.state[param] = {"step": torch.tensor(float((step or case.step) - 1), dtype=torch.float64), **moments}
    param.grad = tree["grad"].double()
    optimizer.step()
    return {name: one.detach().float() for name, one in {"param": param, **moments}.items()}


def tolerances(case: Step, tree: dict) -> dict[str, Tolerance]:
    """1 - beta in float32 is off by up to 6e-8 / (1 - beta). The parameter is a difference, and may be near 0."""
    moment = Tolerance(rtol=1e-4, atol=1e-8)
    return {"param": Tolerance(rtol=1e-4, atol=5e-6), "exp_avg": moment, "exp_avg_sq": moment}


def grad_untouched(run: Observation) -> str | None:
    return None if same(run.tree["grad"], run.back["grad"]) else "the gradient was changed"


grad_untouched.hint = "The step only reads the gradient; whoever made it may still need it."


def is_param(got: dict, expected: Tensor) -> bool:
    return torch.allclose(got["param"], expected.float(), rtol=1e-4, atol=1e-5)


def corrected(case: Step, tree: dict) -> tuple[Tensor, Tensor]:
    """Both moments after the step, their bias corrected."""
    after = by_torch(case, tree)
    return after["exp_avg"] / (1 - case.beta1**case.step), after["exp_avg_sq"] / (1 - case.beta2**case.step)


def eps_elsewhere(case: Step, tree: dict, got: dict) -> bool:
    mean, square = corrected(case, tree)
    under_root = (square + case.eps).sqrt()
    before_correction = square.sqrt() + case.eps / math.sqrt(1 - case.beta2**case.step)
    decayed = tree["param"] * (1 - case.lr * case.weight_decay)
    return any(is_param(got, decayed - case.lr * mean / wrong) for wrong in (under_root, before_correction))


def decays_last(case: Step, tree: dict, got: dict) -> bool:
    mean, square = corrected(case, tree)
    moved_by = case.lr * mean / (square.sqrt() + case.eps)
    return is_param(got, (tree["param"] - moved_by) * (1 - case.lr * case.weight_decay))


def decays_by_itself(case: Step, tree: dict, got: dict) -> bool:
    return is_param(got, by_torch(case, tree, weight_decay=case.weight_decay / case.lr)["param"])


def moves_by(case: Step, tree: dict, got: dict, mean: Tensor, square: Tensor) -> bool:
    """Whether the parameter moved by this mean over the root of this square."""
    decayed = tree["param"] * (1 - case.lr * case.weight_decay)
    return is_param(got, decayed - case.lr * mean / (square.sqrt() + case.eps))


def takes_old_moments(case: Step, tree: dict, got: dict) -> bool:
    """One of the two, or both, as they were before the step."""
    new = corrected(case, tree)
    old = tree["exp_avg"] / (1 - case.beta1**case.step), tree["exp_avg_sq"] / (1 - case.beta2**case.step)
    pairs = ((old[0], new[1]), (new[0], old[1]), old)
    return any(moves_by(case, tree, got, *pair) for pair in pairs)


def corrections_swapped(case: Step, tree: dict, got: dict) -> bool:
    mean, square = corrected(case, tree)
    factor = (1 - case.beta1**case.step) / (1 - case.beta2**case.step)
    return moves_by(case, tree, got, mean * factor, square / factor)


def differs(case: Step, tree: dict, got: dict, name: str) -> bool:
    return not torch.allclose(got[name], by_torch(case, tree)[name], rtol=1e-3, atol=1e-8)


def left_alone(tree: dict, got: dict, *names: str) -> bool:
    return any(torch.equal(got[name], tree[name]) for name in names)


ADAMW = Oracle(
    id="12-adamw",
    expect=by_torch,
    tolerance=tolerances,
    judge=(grad_untouched,),
    budgets=(
        *SAFE,
        *moved(load=lambda case, tree: 4 * case.n_bytes, store=lambda case, tree: 3 * case.n_bytes, launches=1),
        *compiled(),
    ),
    diagnose=(
        Hint(
            lambda case, tree, got: left_alone(tree, got, "param", "exp_avg", "exp_avg_sq"),
            "A tensor still holds what it held before. The step is in place: store the parameter and both moments at "
            "the addresses that they were loaded from.",
        ),
        Hint(
            lambda case, tree, got: is_param(got, by_torch(case, tree, torch.optim.Adam)["param"]),
            "The decay went into the gradient, and through it into the moments: that is Adam. AdamW shrinks the "
            "parameter itself by lr * weight_decay.",
        ),
        Hint(
            lambda case, tree, got: is_param(got, by_torch(case, tree, weight_decay=0.0)["param"]),
            "The parameter is not decayed: multiply it by 1 - lr * weight_decay before the update.",
        ),
        Hint(
            lambda case, tree, got: differs(case, tree, got, "exp_avg"),
            "exp_avg is not beta1 * exp_avg + (1 - beta1) * grad.",
        ),
        Hint(
            lambda case, tree, got: differs(case, tree, got, "exp_avg_sq"),
            "exp_avg_sq is not beta2 * exp_avg_sq + (1 - beta2) * grad * grad.",
        ),
        Hint(
            decays_by_itself,
            "The parameter is decayed too much: multiply it by 1 - lr * weight_decay, not by 1 - weight_decay.",
        ),
        Hint(
            lambda case, tree, got: is_param(got, by_torch(case, tree, step=LATE)["param"]),
            "The moments start at zero and are too small at first: divide them by 1 - beta1**step and 1 - beta2**step.",
        ),
        Hint(
            lambda case, tree, got: is_param(got, by_torch(case, tree, step=case.step + 1)["param"]),
            "The correction is that of the next step: `step` counts from 1 and is the step being taken.",
        ),
        Hint(
            eps_elsewhere,
            "eps is at the wrong place: it is added to the root of the corrected second moment, as the last thing.",
        ),
        Hint(
            decays_last,
            "The decay came after the update and shrank that as well: decay what was loaded, then subtract.",
        ),
        Hint(
            takes_old_moments,
            "The parameter was moved by a moment from before this step: update both moments first.",
        ),
        Hint(
            corrections_swapped,
            "The corrections are swapped: 1 - beta1**step belongs to exp_avg, 1 - beta2**step to exp_avg_sq.",
        ),
        Hint(
            lambda case, tree, got: not is_param(got, by_torch(case, tree)["param"]),
            "Both moments are right, and the parameter is not. It loses lr * (exp_avg / correction1) / "
            "(sqrt(exp_avg_sq / correction2) + eps), with a root over the second correction too.",
        ),
    ),
)
