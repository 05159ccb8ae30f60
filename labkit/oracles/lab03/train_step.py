"""Lab 03: what is true of a training step with autocast and loss scaling, and what the usual mistakes look like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab03.train_step import (
    BACKWARD,
    FORWARD,
    INPUTS,
    KEPT,
    LOSSES,
    SCALES,
    WEIGHTS,
    Steps,
)
from labkit.oracles.lab03.step_mistakes import (
    CLOSE,
    as_if,
    by_value,
    clip_then_unscale,
    clip_to_a_divided_norm,
    divided_loss,
    each_by_itself,
    first_alone,
    in_float32,
    near,
    never_scaled,
    never_scaled_clip_first,
    never_unscaled,
    not_clipped,
    start,
    stretched,
)
from labkit.spec import CaseRun, Hint, Observation, Oracle, Tolerance


def tolerances(run: CaseRun[Steps]) -> dict[str, Tolerance]:
    """CLOSE, by the dtype computed in: of how far the weights moved, and of each loss."""
    right = run.expected
    return {
        WEIGHTS: Tolerance(atol=near(run, right[WEIGHTS])),
        LOSSES: Tolerance(rtol=CLOSE[run.case.dtype]),
    }


def first_good(case: Steps) -> int:
    """The first step whose batch does not overflow."""
    return next(step for step in range(case.n_steps) if step not in case.overflow_in_steps)


def of_another_length(run: CaseRun[Steps]) -> bool:
    """Whether the first step that is taken goes the right way, and not as far as it should."""
    step = first_good(run.case)
    before = run.got[WEIGHTS][step - 1] if step else start(run.tree)
    moved, right = run.got[WEIGHTS][step] - before, run.expected[WEIGHTS][step] - start(run.tree)
    along = float(torch.nn.functional.cosine_similarity(moved, right, dim=0))
    return along > 0.995 and not 0.9 < float(moved.norm() / right.norm()) < 1.1


def moved_on_bad(run: CaseRun[Steps]) -> bool:
    """Whether a batch that overflows has changed the weights; momentum alone counts too."""
    before = torch.cat([start(run.tree)[None], run.got[WEIGHTS][:-1]])
    return any(bool((run.got[WEIGHTS][step] != before[step]).any()) for step in run.case.overflow_in_steps)


def loss_is(power: int) -> Callable[[CaseRun[Steps]], object]:
    """A diagnosis: the first loss that was returned is the right one times the scale to this power."""

    def same(run: CaseRun[Steps]) -> bool:
        step = first_good(run.case)
        scale = run.expected[SCALES][f"after step {step - 1}"] if step else run.case.init_scale
        name = f"in step {step}"
        return run.case.scaled and 0.9 < run.got[LOSSES][name] / run.expected[LOSSES][name] / scale**power < 1.1

    return same


NEVER_SCALED = (
    "The updates are too small, by a factor of the scale or more. Either backward was not called on "
    "scaler.scale(loss), or something was divided by the scale that should not be: the loss, max_norm, or gradients "
    "that scaler.unscale_ or scaler.step divides as well."
)
"""Far below the last bit of a weight these look the same."""


def in_words(run: Observation) -> str:
    """ "train_step(model, x, y, optimizer, scaler, max_norm=0.02, dtype=torch.float16), 4 steps, ..." """
    case = run.case
    scaler = f"a GradScaler that starts at {case.init_scale:g}" if case.scaled else "a GradScaler that is switched off"
    text = (
        f"train_step(..., scaler, max_norm={case.max_norm}, dtype=torch.{case.dtype}), {case.n_steps} steps, {scaler}"
    )
    if case.overflow_in_steps:
        text += f"; float16 overflows in step {' and '.join(map(str, case.overflow_in_steps))}"
    return text


MOST_STEPS = 16
"""As many as a case may have, at least: places are named for each."""

TRAIN_STEP = Oracle(
    id="03-train-step",
    expect=in_float32,
    tolerance=tolerances,
    judge=(inputs_untouched,),
    call=in_words,
    places={
        **{f"{LOSSES}.in step {step}": f"loss returned in step {step}" for step in range(MOST_STEPS)},
        **{f"{SCALES}.after step {step}": f"scale of the scaler after step {step}" for step in range(MOST_STEPS)},
    },
    errors={
        "already been called": "One unscale_ in each step, and one update at its end, whatever the gradients are.",
        "called after step": "update is the last call of a step: it makes the scaler ready for the next.",
        "No inf checks": "scaler.unscale_ or scaler.step has to look at the gradients first; update comes last.",
    },
    diagnose=(
        Hint(
            lambda run: run.got[KEPT] != "float32",
            "The weights are no longer float32: leave the model as it is, autocast makes the 16-bit copies that it "
            "needs.",
        ),
        Hint(
            lambda run: len(run.got[FORWARD]) == run.case.n_steps and set(run.got[FORWARD]) == {"float32"},
            "The forward pass ran in float32: call the model inside torch.autocast(x.device.type, dtype=dtype).",
        ),
        Hint(
            lambda run: len(run.got[FORWARD]) == run.case.n_steps and set(run.got[FORWARD]) != {run.case.dtype},
            "Autocast ran in another dtype than the one you were given: pass it dtype=dtype.",
        ),
        Hint(
            lambda run: len(run.got[FORWARD]) > run.case.n_steps,
            "The model was called more than once in a step: keep the loss of the one forward pass.",
        ),
        Hint(
            lambda run: set(run.got[INPUTS]) - {"float32"},
            "x was cast before the call: pass it to the model as it is. Autocast casts only what goes into a product. "
            "Token numbers, for example, must stay integers.",
        ),
        Hint(
            lambda run: len(run.got[BACKWARD]) > run.case.n_steps,
            "There was more than one backward pass in a step: their gradients add up.",
        ),
        Hint(
            lambda run: any(run.got[BACKWARD]),
            "The backward pass ran under autocast: only the forward pass and the loss belong inside. Backward follows "
            "the dtypes that the forward pass chose.",
        ),
        Hint(
            lambda run: run.case.overflow_in_steps and not run.got[WEIGHTS].isfinite().all(),
            "The optimizer stepped although gradients were infinite or NaN: let scaler.step(optimizer) decide.",
        ),
        Hint(
            moved_on_bad,
            "A batch that overflowed changed the weights: call scaler.step(optimizer), which skips it. Setting its "
            "gradients to 0 still lets momentum move them.",
        ),
        Hint(
            loss_is(1),
            "The loss that came back is the scaled one: use scaler.scale(loss) for backward only, and return the loss.",
        ),
        Hint(
            loss_is(-1),
            "The loss that came back was divided by the scale, and it had never been multiplied by it: "
            "scaler.scale(loss) is a new tensor.",
        ),
        Hint(
            lambda run: run.got[SCALES]["after step 0"] < run.expected[SCALES]["after step 0"],
            "A batch overflowed that need not have: leave the loss in float32, because loss × scale is too large for "
            "float16.",
        ),
        Hint(
            lambda run: bool((run.got[WEIGHTS] == start(run.tree)).all()),
            "The weights never move: no step is taken, or zero_grad comes after backward and throws the gradients "
            "away.",
        ),
        Hint(
            as_if(clip_then_unscale),
            "Clipped first and unscaled afterwards: the scaled gradients have a norm far above max_norm, so that "
            "almost nothing is left. Call scaler.unscale_(optimizer) before clipping.",
        ),
        Hint(as_if(never_scaled, slack=5.0), NEVER_SCALED),
        Hint(as_if(never_scaled_clip_first, slack=5.0), NEVER_SCALED),
        Hint(as_if(divided_loss, slack=5.0), NEVER_SCALED),
        Hint(as_if(clip_to_a_divided_norm, slack=5.0), NEVER_SCALED),
        Hint(
            as_if(never_unscaled),
            "The optimizer received gradients that are still scaled: scaler.unscale_ or scaler.step must divide them.",
        ),
        Hint(
            as_if(clear=False),
            "The gradients of earlier batches are still in there: call optimizer.zero_grad() in every step.",
        ),
        Hint(
            as_if(not_clipped),
            "The gradients are not clipped to max_norm when the optimizer uses them: clip between unscale_ and step.",
        ),
        Hint(
            as_if(each_by_itself),
            "Every parameter was clipped by its own norm: max_norm bounds the norm of all gradients together.",
        ),
        Hint(
            as_if(first_alone),
            "Only the gradients of the optimizer's first group were clipped: max_norm bounds the norm of all of them "
            "together.",
        ),
        Hint(
            as_if(stretched),
            "Gradients whose norm is below max_norm were stretched to it: clipping shortens, and leaves short ones "
            "alone.",
        ),
        Hint(
            as_if(n_updates=2),
            "The optimizer stepped twice with the same gradients: scaler.step(optimizer) is the one step.",
        ),
        Hint(
            as_if(by_value),
            "Every element was clipped by itself, which changes the gradient's direction: use clip_grad_norm_, which "
            "shortens it.",
        ),
        Hint(
            of_another_length,
            "The gradients have the right direction and the wrong length: where the square root of the sum of all "
            "squares is above max_norm, clipping makes it max_norm.",
        ),
        Hint(
            lambda run: run.case.scaled and run.got[SCALES] != run.expected[SCALES],
            "The scale is not updated: call scaler.update() once at the end of every step, on the scaler that you are "
            "given.",
        ),
    ),
)
