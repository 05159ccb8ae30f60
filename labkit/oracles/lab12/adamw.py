"""Lab 12: what is true of a step of AdamW, and what the usual mistakes look like."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labkit.exercises.lab12.adamw import Step
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import SAFE, at_full_size, compiled, moved
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle, Tolerance
from labkit.tree import same

MOST_TRIALS = 20
"""Configurations that an autotuner may try, and the step itself."""
LATE = 10**6
"""A step so late that the correction of the bias is over."""


def by_torch(
    run: CaseRun[Step],
    kind: type[torch.optim.Optimizer] = torch.optim.AdamW,
    step: int | None = None,
    weight_decay: float | None = None,
) -> dict[str, Tensor]:
    """The step by an optimizer of PyTorch's, in float64, rounded at the end."""
    case = run.case
    param = torch.nn.Parameter(run.tree["param"].double())
    decay = case.weight_decay if weight_decay is None else weight_decay
    optimizer = kind([param], case.lr, (case.beta1, case.beta2), case.eps, decay)
    moments = {name: run.tree[name].double() for name in ("exp_avg", "exp_avg_sq")}
    optimizer.state[param] = {"step": torch.tensor(float((step or case.step) - 1), dtype=torch.float64), **moments}
    param.grad = run.tree["grad"].double()
    optimizer.step()
    return {name: one.detach().float() for name, one in {"param": param, **moments}.items()}


def tolerances(run: CaseRun[Step]) -> dict[str, Tolerance]:
    """1 - beta in float32 is off by up to 6e-8 / (1 - beta). The parameter is a difference, and may be near 0."""
    moment = Tolerance(rtol=1e-4, atol=1e-8)
    return {"param": Tolerance(rtol=1e-4, atol=5e-6), "exp_avg": moment, "exp_avg_sq": moment}


def grad_untouched(run: CaseRun) -> str | None:
    return None if same(run.tree["grad"], run.back["grad"]) else "the gradient was changed"


grad_untouched.hint = "The step only reads the gradient; whoever made it may still need it."


def in_students_names(run: Observation) -> str:
    case = run.case
    named = {name: getattr(case, name) for name in ("step", "lr", "beta1", "beta2", "eps", "weight_decay")}
    return as_call("adamw_step", *(run.tree[name] for name in ("param", "grad", "exp_avg", "exp_avg_sq")), **named)


def is_param(got: dict, expected: Tensor) -> bool:
    return torch.allclose(got["param"], expected.float(), rtol=1e-4, atol=1e-5)


def corrected(run: CaseRun[Step]) -> tuple[Tensor, Tensor]:
    """Both moments after the step, their bias corrected."""
    case = run.case
    after = by_torch(run)
    return after["exp_avg"] / (1 - case.beta1**case.step), after["exp_avg_sq"] / (1 - case.beta2**case.step)


def eps_elsewhere(run: CaseRun[Step]) -> bool:
    case = run.case
    mean, square = corrected(run)
    under_root = (square + case.eps).sqrt()
    before_correction = square.sqrt() + case.eps / math.sqrt(1 - case.beta2**case.step)
    decayed = run.tree["param"] * (1 - case.lr * case.weight_decay)
    return any(is_param(run.got, decayed - case.lr * mean / wrong) for wrong in (under_root, before_correction))


def decays_last(run: CaseRun[Step]) -> bool:
    case = run.case
    mean, square = corrected(run)
    moved_by = case.lr * mean / (square.sqrt() + case.eps)
    return is_param(run.got, (run.tree["param"] - moved_by) * (1 - case.lr * case.weight_decay))


def decays_by_itself(run: CaseRun[Step]) -> bool:
    return is_param(run.got, by_torch(run, weight_decay=run.case.weight_decay / run.case.lr)["param"])


def moves_by(run: CaseRun[Step], mean: Tensor, square: Tensor) -> bool:
    """Whether the parameter moved by this mean over the root of this square."""
    case = run.case
    decayed = run.tree["param"] * (1 - case.lr * case.weight_decay)
    return is_param(run.got, decayed - case.lr * mean / (square.sqrt() + case.eps))


def takes_old_moments(run: CaseRun[Step]) -> bool:
    """One of the two, or both, as they were before the step."""
    case = run.case
    new = corrected(run)
    old = run.tree["exp_avg"] / (1 - case.beta1**case.step), run.tree["exp_avg_sq"] / (1 - case.beta2**case.step)
    pairs = ((old[0], new[1]), (new[0], old[1]), old)
    return any(moves_by(run, *pair) for pair in pairs)


def corrections_swapped(run: CaseRun[Step]) -> bool:
    case = run.case
    mean, square = corrected(run)
    factor = (1 - case.beta1**case.step) / (1 - case.beta2**case.step)
    return moves_by(run, mean * factor, square / factor)


def taken_again(run: CaseRun[Step]) -> bool:
    """exp_avg is that after several steps with the same gradient."""
    beta, old, grad = run.case.beta1, run.tree["exp_avg"].double(), run.tree["grad"].double()
    times = [beta**n * old + (1 - beta**n) * grad for n in range(2, MOST_TRIALS)]
    return any(torch.allclose(run.got["exp_avg"].double(), one, rtol=1e-3, atol=1e-8) for one in times)


def stores_corrected(run: CaseRun[Step]) -> bool:
    """A moment is stored after its correction."""
    got = run.got["exp_avg"], run.got["exp_avg_sq"]
    near = [torch.allclose(one, right, rtol=1e-3, atol=1e-8) for one, right in zip(got, corrected(run))]
    return any(near) and (differs(run, "exp_avg") or differs(run, "exp_avg_sq"))


def corrected_too_late(run: CaseRun[Step]) -> bool:
    """By beta**(step - 1), which makes the first correction 0."""
    if run.case.step == 1:
        return not run.got["param"].isfinite().any()
    return is_param(run.got, by_torch(run, step=run.case.step - 1)["param"])


def differs(run: CaseRun[Step], name: str) -> bool:
    return not torch.allclose(run.got[name], by_torch(run)[name], rtol=1e-3, atol=1e-8)


def end_left_alone(run: CaseRun[Step]) -> object:
    """From some element on, the parameter and both moments are as they were; where they all are, who knows why."""
    changed = torch.stack([run.got[name] != run.tree[name] for name in ("param", "exp_avg", "exp_avg_sq")]).any(0)
    if not changed.any():
        return CANNOT_TELL
    n_changed = int(changed.nonzero()[-1]) + 1
    right = by_torch(run)
    return n_changed < len(changed) and all(
        torch.allclose(run.got[name][:n_changed], one[:n_changed], rtol=1e-4, atol=1e-5) for name, one in right.items()
    )


def left_alone(run: CaseRun, *names: str) -> bool:
    return any(torch.equal(run.got[name], run.tree[name]) for name in names)


ADAMW = Oracle(
    id="12-adamw",
    expect=by_torch,
    tolerance=tolerances,
    judge=(grad_untouched,),
    budgets=(
        *SAFE,
        # Read: the parameter, its gradient and both moments. Written: the parameter and both moments.
        *moved(load=lambda run: 4 * run.case.n_bytes, store=lambda run: 3 * run.case.n_bytes, launches=1),
        *compiled(),
    ),
    full_size=at_full_size(most_programs=lambda run: run.case.n // 64),
    call=in_students_names,
    diagnose=(
        Hint(
            end_left_alone,
            "The first elements are right, and the rest is as it was before: there are too few programs. Round up, "
            "with triton.cdiv.",
        ),
        Hint(
            lambda run: left_alone(run, "param", "exp_avg", "exp_avg_sq"),
            "A tensor still holds what it held before. The step is in place: store the parameter and both moments at "
            "the addresses that they were loaded from.",
        ),
        Hint(
            taken_again,
            "The step was taken several times. Under @triton.autotune each configuration runs the kernel, so one that "
            'works in place needs restore_value=["param_ptr", ...] with all that it writes.',
        ),
        Hint(
            stores_corrected,
            "A moment was stored after its correction. Store beta * moment + ..., and correct it for this step's "
            "update alone: the next step begins from the moment itself.",
        ),
        Hint(
            lambda run: is_param(run.got, by_torch(run, torch.optim.Adam)["param"]),
            "The decay went into the gradient, and through it into the moments: that is Adam. AdamW shrinks the "
            "parameter itself by lr * weight_decay.",
        ),
        Hint(
            lambda run: is_param(run.got, by_torch(run, weight_decay=0.0)["param"]),
            "The parameter is not decayed: multiply it by 1 - lr * weight_decay before the update.",
        ),
        Hint(
            lambda run: differs(run, "exp_avg"),
            "exp_avg is not beta1 * exp_avg + (1 - beta1) * grad.",
        ),
        Hint(
            lambda run: differs(run, "exp_avg_sq"),
            "exp_avg_sq is not beta2 * exp_avg_sq + (1 - beta2) * grad * grad.",
        ),
        Hint(
            decays_by_itself,
            "The parameter is decayed too much: multiply it by 1 - lr * weight_decay, not by 1 - weight_decay.",
        ),
        Hint(
            lambda run: is_param(run.got, by_torch(run, step=LATE)["param"]),
            "The moments start at zero and are too small at first: divide them by 1 - beta1**step and 1 - beta2**step.",
        ),
        Hint(
            corrected_too_late,
            "The corrections are those of the step before: `step` counts from 1, so at the first step they are "
            "1 - beta1 and 1 - beta2, not 0.",
        ),
        Hint(
            lambda run: moves_by(run, corrected(run)[0], corrected(run)[1].square()),
            "The root is missing: the update divides by sqrt(exp_avg_sq / correction2), not by exp_avg_sq / "
            "correction2.",
        ),
        Hint(
            lambda run: is_param(run.got, by_torch(run, step=run.case.step + 1)["param"]),
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
            lambda run: moves_by(run, corrected(run)[0], corrected(run)[1] * (1 - run.case.beta2**run.case.step)),
            "The second moment was not corrected: divide exp_avg_sq by 1 - beta2**step before the root.",
        ),
        Hint(
            lambda run: moves_by(run, corrected(run)[0] * (1 - run.case.beta1**run.case.step), corrected(run)[1]),
            "The first moment was not corrected: divide exp_avg by 1 - beta1**step.",
        ),
        Hint(
            lambda run: not is_param(run.got, by_torch(run)["param"]),
            "Both moments are right, and the parameter is not. It loses lr * (exp_avg / correction1) / "
            "(sqrt(exp_avg_sq / correction2) + eps), with a root over the second correction too.",
        ),
    ),
)
