"""Lab 06: what is true of AdamW in bfloat16: over many copies, the mean goes where exact arithmetic goes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.compare import inputs_untouched
from labkit.exercises.lab06.bf16_states import N_FIRST, Bf16Steps
from labkit.oracles.calls import fields_in_words
from labkit.oracles.hints import once
from labkit.oracles.lab06.bf16_exact import GAP, MISTAKES, exactly
from labkit.oracles.lab06.histories import IN_NEW_MEMORY, ONE_BY_ONE, OTHER_STATE_BYTES, STEP_ERRORS, STOPS_AT_NONE
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, MiB, Observation, Oracle

N_SIGMAS = 7.5
"""How far a mean may be from its expectation, in standard deviations: a right answer leaves it once in 1e13 means."""
FEWEST, MOST = 0.6, 1.6
"""How far apart the copies may be, as multiples of what independent draws make of them."""
LEAST_CUT = 0.3
"""The same where the new weights are cut: their noise is gone, that of the moments is not."""
SQUARE_RTOL = 0.02
"""Of the mean second moment: chance moves it by less than a tenth of this."""
TOO_MANY_BYTES = (
    "More than four bytes per weight stay alive after a step: the two moments are bfloat16, and there is no float32 "
    "copy of the weights. Convert to float32 inside the step, and round what you store."
)


@dataclass(frozen=True)
class Fault:
    """What is wrong. `key` picks the hint."""

    key: str
    text: str


def allowed(case: Bf16Steps, n_means: int = 1) -> float:
    """How far the mean over the copies may be off: in each step chance moves a weight by half a gap at most."""
    return N_SIGMAS * math.sqrt(case.n_steps) * GAP / 2 / math.sqrt(case.n_copies * n_means) + 2e-3 * case.lr


@once
def find(run: CaseRun[Bf16Steps]) -> Fault | None:
    """The first thing that is wrong, the plainest first."""
    case, got = run.case, run.got
    if case.idle:
        return find_at_idle(run)
    weights, square, shape = got["weights"], got["exp_avg_sq"], (case.n_copies, case.n_weights)
    if weights.dtype != torch.bfloat16:
        return Fault("dtype", f"the weights became {str(weights.dtype).removeprefix('torch.')}")
    if run.measured.get("saved_bytes", 0) > kept_bytes(run):
        n_weights = case.n_copies * case.n_weights
        return Fault("wide", f"{run.measured['saved_bytes'] / n_weights:.2f} bytes per weight stay alive, not 4")
    if not isinstance(square, Tensor) or square.shape != shape or square.dtype != torch.bfloat16:
        have = f"{square.dtype} of shape {tuple(square.shape)}" if isinstance(square, Tensor) else "nothing"
        return Fault("names", f'self.state[p]["exp_avg_sq"] holds {have.removeprefix("torch.")}')
    if not isinstance(got["mean_of_exp_avg"], Tensor):
        return Fault("names", 'self.state[p]["exp_avg"] holds no tensor of the shape of the parameter')
    return find_in_weights(run) or find_in_squares(run) or find_in_means(run) or find_in_draws(run)


def find_at_idle(run: CaseRun[Bf16Steps]) -> Fault | None:
    if not run.got["idle"]:
        return Fault("idle", "a parameter without a gradient has changed")
    if run.got["exp_avg_sq"] is None and (run.got["weights"] == run.tree["weights"]).all():
        return Fault("stops at None", "no parameter behind the one without a gradient has moved, or has a state")
    return None


def find_in_weights(run: CaseRun[Bf16Steps]) -> Fault | None:
    case, start = run.case, run.tree["weights"].double()
    got, right, variance = run.got["weights"].double(), exactly(run).weight, exactly(run).variance
    mean, spread = got.mean(0), got.std(0)
    at = int((mean - right).abs().argmax())
    text = (
        f"weight {at} began at {start[at]:.4g}; after {case.n_steps} steps the mean of its {case.n_copies} copies is "
        f"{mean[at]:.4g}, exact arithmetic gives {right[at]:.4g}"
    )
    if not mean.isfinite().all():
        return Fault("nan", text)
    if (got == start).all():
        return Fault("stalls", f"after {case.n_steps} steps no weight has changed")
    off, most = (mean - right).abs(), allowed(case)
    for mistake in MISTAKES:
        # First, for they change how far chance moves a weight, too.
        wrong = exactly(run, mistake).weight
        if off.max() > most >= (mean - wrong).abs().max() and (right - wrong).abs().max() > most:
            return Fault(mistake, text)
    by_chance = variance.mean().sqrt()
    spread = spread.square().mean().sqrt()
    # Cutting halves the spread as well. One draw for all weights can take all of them to zero, but leaves no spread.
    if spread > LEAST_CUT * by_chance and off.max() > most and (mean.abs() < right.abs()).all():
        return Fault("toward zero", text)
    if not FEWEST * by_chance <= spread <= MOST * by_chance:
        return Fault(
            "no spread" if spread < by_chance else "same noise",
            f"the copies of a weight differ by {spread:.2g} (standard deviation); a draw for each of them in each step "
            f"makes it {by_chance:.2g}",
        )
    return None if off.max() <= most else Fault("biased", text)


def find_in_squares(run: CaseRun[Bf16Steps]) -> Fault | None:
    got, right = run.got["exp_avg_sq"].double().mean(0), exactly(run).square
    off = (got / right - 1).abs()
    if off.max() <= SQUARE_RTOL:
        return None
    at = int(off.argmax())
    return Fault(
        "square",
        f"after {run.case.n_steps} steps the mean exp_avg_sq of weight {at} is {got[at]:.4g}, exact arithmetic gives "
        f"{right[at]:.4g}",
    )


def find_in_means(run: CaseRun[Bf16Steps]) -> Fault | None:
    """The mean over the copies would be off by chance alone; rounded to nearest, all copies are off alike."""
    got, right = run.got["mean_of_exp_avg"], exactly(run)
    off = (got - right.mean).abs() / (N_SIGMAS * (right.of_mean / run.case.n_copies).sqrt() + 1e-6)
    if off.max() <= 1:
        return None
    at = int(off.argmax())
    return Fault(
        "mean",
        f"after {run.case.n_steps} steps the mean exp_avg of weight {at} is {got[at]:.6g}, exact arithmetic gives "
        f"{right.mean[at]:.6g}",
    )


def find_in_draws(run: CaseRun[Bf16Steps]) -> Fault | None:
    if not run.got["again"]:
        return Fault("ignored", f"{N_FIRST} steps with the same seed ended in other weights than the first time")
    if run.got["other"]:
        return Fault("reseeded", f"{N_FIRST} steps with another seed ended in the same weights")
    return None


def kept_bytes(run: CaseRun[Bf16Steps]) -> float:
    """Two moments of two bytes."""
    return 4 * run.case.n_copies * run.case.n_weights + OTHER_STATE_BYTES * run.case.n_tensors


def peak_bytes(run: CaseRun[Bf16Steps]) -> float:
    """Two bytes for a weight, its gradient and each moment; float32 numbers for one of the tensors."""
    n_weights = run.case.n_copies * run.case.n_weights
    return 8 * n_weights + 96 * n_weights / run.case.n_tensors + MiB


def problem(run: CaseRun) -> str | None:
    found = find(run)
    return found and found.text


def found(*keys: str, cannot_tell: str = "") -> Callable[[CaseRun], object]:
    """A diagnosis: the fault is one of these. cannot_tell: one that says nothing against it."""

    def when(run: CaseRun) -> object:
        fault = find(run)
        return CANNOT_TELL if fault and fault.key == cannot_tell else fault is not None and fault.key in keys

    return when


def called(run: Observation) -> str:
    case = run.case
    return (
        f"BF16AdamW(params, generator, {fields_in_words(case.settings())}), {case.n_steps} steps of {case.n_copies} "
        f"copies of {case.n_weights} weights" + ", behind a parameter without a gradient" * case.idle
    )


BF16_STATES = Oracle(
    id="06-bf16-states",
    judge=(inputs_untouched, problem),
    call=called,
    axis="numbers of steps and settings",
    errors=STEP_ERRORS,
    budgets=(
        Budget(
            "saved_bytes",
            kept_bytes,
            TOO_MANY_BYTES,
        ),
        Budget("peak_bytes", peak_bytes, ONE_BY_ONE),
    ),
    diagnose=(
        Hint(
            found("dtype"),
            "The weights have to stay bfloat16: store the rounded result in place, with p.copy_(...).",
        ),
        IN_NEW_MEMORY,
        Hint(found("wide"), TOO_MANY_BYTES),
        Hint(
            found("names"),
            'The check reads self.state[p]["exp_avg"] and self.state[p]["exp_avg_sq"], the names that torch uses: '
            "bfloat16 tensors of the shape of the parameter.",
        ),
        Hint(
            found("idle"),
            "A parameter without a gradient was stepped. One whose p.grad is None makes no step, nor does it decay.",
        ),
        Hint(found("stops at None"), STOPS_AT_NONE),
        Hint(
            found("stalls", cannot_tell="no spread"),
            "No weight moves, because the weights are rounded to nearest: an update below half a bfloat16 step is lost "
            "every time. Work out the new weight in float32, and round that by chance. In-place operations on p, such "
            "as p.sub_(...) and p.mul_(...), round to nearest as well.",
        ),
        Hint(
            found("no spread"),
            "All copies of a weight go nearly the same way. The weights are not rounded by chance, or one draw serves "
            "several elements: every element needs its own, in every step.",
        ),
        Hint(
            found("same noise", cannot_tell="ignored"),
            "The copies are much further apart than independent draws make them: a weight gets the same noise in every "
            "step, so some always go up and some always down. Do not seed a generator in step.",
        ),
        Hint(
            found("no decay"),
            "The weights do not decay. On bfloat16, p.mul_(1 - lr * weight_decay) rounds back to the old weight: decay "
            "the float32 value, before it is rounded.",
        ),
        Hint(
            found("l2"),
            "The decay went into the gradient. AdamW shrinks the weight itself, by 1 - lr * weight_decay.",
        ),
        Hint(
            found("no correction", "no first correction", "no second correction"),
            "The moments are not corrected: divide them by 1 - beta1**step and 1 - beta2**step.",
        ),
        Hint(
            found("decay not times lr"),
            "The weights decay too fast: the factor is 1 - lr * weight_decay, not 1 - weight_decay.",
        ),
        Hint(
            found("eps before the correction"),
            "eps was added before the correction. It is the last thing before the division: the root of the corrected "
            "exp_avg_sq, plus eps.",
        ),
        Hint(found("betas swapped"), "The betas are swapped: the first belongs to exp_avg."),
        Hint(
            found("no root"),
            "The root is missing: the update divides by the square root of the corrected exp_avg_sq.",
        ),
        Hint(found("uphill"), "The weights climb up the gradient. Subtract the step."),
        Hint(
            found("toward zero"),
            "On average the weights end too close to zero. Cutting bits off rounds toward zero every time: the noise "
            "has to be added before the cut, and has to reach over the whole gap between two numbers.",
        ),
        Hint(
            found("square"),
            "The weights are right on average, and the second moment is not: with beta2 = 0.999 it changes by 0.1 % in "
            "a step, which rounding to nearest loses. Round the new moments by chance too, with new draws in every "
            "step.",
        ),
        Hint(
            found("mean"),
            "The weights and the second moment are right on average, and the first moment is not: it was rounded to "
            "nearest, as every operation on a bfloat16 tensor does. Round it by chance too.",
        ),
        Hint(found("ignored"), "The same seed gave other draws: take every draw from self.generator."),
        Hint(found("reseeded"), "Another seed gave the same draws: take every draw from self.generator."),
    ),
)
