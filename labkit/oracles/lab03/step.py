"""Lab 03: the same training step in float32, and what the usual mistakes make of it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab03.step import (
    BACKWARD,
    FORWARD,
    KEPT,
    LEARNING_RATE,
    LOSSES,
    SCALES,
    WEIGHTS,
    Classifier,
    Steps,
)
from labkit.spec import Hint, Oracle, Tolerance

CLOSE = {"float16": 0.01, "bfloat16": 0.05}
"""How far the movement of a weight may be off, as a part of the largest movement of any: several times what rounding
to 11 or 8 bits costs in this model, and far less than any mistake."""

Treat = Callable[[list[torch.nn.Parameter], float, float], object]
"""What is done to the gradients between backward and the step: (parameters, max_norm, scale)."""


def clip(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    torch.nn.utils.clip_grad_norm_(parameters, max_norm)


def multiply(parameters: list[torch.nn.Parameter], factor: float) -> None:
    for parameter in parameters:
        parameter.grad.mul_(factor)


def in_float32(case: Steps, tree: dict, treat: Treat = clip, clear: bool = True) -> dict[str, object]:
    """PyTorch's own step without autocast and without a scaler; a batch that overflows float16 is left out.

    treat, clear: what a mistaken step does to the gradients, and whether it clears them before the next.
    """
    model = Classifier(tree["weights"])
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9)
    losses, weights, scales = {}, [], {}
    scale = case.init_scale if case.scaled else 1.0
    for step in range(case.n_steps):
        if step in case.overflow_in_steps:
            scale *= 0.5
            losses[f"in step {step}"] = None
        else:
            if clear:
                optimizer.zero_grad()
            loss = model(tree["xs"][step], tree["ys"][step])
            loss.backward()
            treat(parameters, case.max_norm, scale)
            optimizer.step()
            losses[f"in step {step}"] = loss.item()
        weights.append(torch.cat([weight.detach().flatten() for weight in model.weights]))
        scales[f"after step {step}"] = scale
    return {
        KEPT: "float32",
        FORWARD: [case.dtype] * case.n_steps,
        BACKWARD: [False] * case.n_steps,
        SCALES: scales,
        WEIGHTS: torch.stack(weights),
        LOSSES: losses,
    }


def start(tree: dict) -> torch.Tensor:
    return torch.cat([weight.flatten() for weight in tree["weights"]])


def near(case: Steps, tree: dict, weights: torch.Tensor) -> float:
    """How far off the weights may be that should be these."""
    return CLOSE[case.dtype] * float((weights - start(tree)).abs().max())


def tolerances(case: Steps, tree: dict) -> dict[str, Tolerance]:
    right = in_float32(case, tree)
    return {
        WEIGHTS: Tolerance(atol=near(case, tree, right[WEIGHTS])),
        LOSSES: Tolerance(rtol=CLOSE[case.dtype]),
    }


def as_if(treat: Treat = clip, clear: bool = True, slack: float = 2.0) -> Callable[[Steps, dict, dict], bool]:
    """A diagnosis: the weights are those of a step with this mistake, and those of a right one are elsewhere.

    slack: more than rounding, for mistakes that leave a gradient in fp16 where it has few bits.
    """

    def same(case: Steps, tree: dict, got: dict) -> bool:
        wrong, right = (in_float32(case, tree, *how)[WEIGHTS] for how in ((treat, clear), ()))
        close = slack * near(case, tree, wrong)
        return bool((got[WEIGHTS] - wrong).abs().max() <= close and (right - wrong).abs().max() > close)

    return same


def clip_then_unscale(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    multiply(parameters, scale)
    clip(parameters, max_norm, scale)
    multiply(parameters, 1 / scale)


def never_scaled(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    multiply(parameters, 1 / scale)
    clip(parameters, max_norm, scale)


def never_scaled_clip_first(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    clip(parameters, max_norm, scale)
    multiply(parameters, 1 / scale)


def never_unscaled(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    multiply(parameters, scale)
    clip(parameters, max_norm, scale)


def each_by_itself(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    for parameter in parameters:
        clip([parameter], max_norm, scale)


def by_value(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    torch.nn.utils.clip_grad_value_(parameters, max_norm)


def not_clipped(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    """Nothing."""


def moved_on_bad(case: Steps, tree: dict, got: dict) -> bool:
    """Whether a batch that overflows has changed the weights; momentum alone counts too."""
    before = torch.cat([start(tree)[None], got[WEIGHTS][:-1]])
    return any(bool((got[WEIGHTS][step] != before[step]).any()) for step in case.overflow_in_steps)


def loss_ratio(case: Steps, tree: dict, got: dict) -> float:
    """The first loss that was returned, as a multiple of the right one."""
    step = next(f"in step {step}" for step in range(case.n_steps) if step not in case.overflow_in_steps)
    return got[LOSSES][step] / in_float32(case, tree)[LOSSES][step]


NEVER_SCALED = (
    "The updates are too small by the scale: unscaling divides gradients that were never multiplied. Call backward on "
    "scaler.scale(loss)."
)

TRAIN_STEP = Oracle(
    id="03-train-step",
    expect=in_float32,
    tolerance=tolerances,
    judge=(inputs_untouched,),
    diagnose=(
        Hint(
            lambda case, tree, got: got[KEPT] != "float32",
            "The weights are no longer float32: leave the model as it is, autocast makes the 16-bit copies that it "
            "needs.",
        ),
        Hint(
            lambda case, tree, got: len(got[FORWARD]) == case.n_steps and set(got[FORWARD]) == {"float32"},
            "The forward pass ran in float32: call the model inside torch.autocast(x.device.type, dtype=dtype).",
        ),
        Hint(
            lambda case, tree, got: len(got[FORWARD]) == case.n_steps and set(got[FORWARD]) != {case.dtype},
            "Autocast ran in another dtype than asked for: hand it dtype=dtype.",
        ),
        Hint(
            lambda case, tree, got: len(got[FORWARD]) > case.n_steps,
            "The model was called more than once in a step: keep the loss of the one forward pass.",
        ),
        Hint(
            lambda case, tree, got: any(got[BACKWARD]),
            "The backward pass ran under autocast: only the forward pass and the loss belong inside. Backward follows "
            "the dtypes that the forward pass chose.",
        ),
        Hint(
            lambda case, tree, got: case.overflow_in_steps and not got[WEIGHTS].isfinite().all(),
            "The optimizer stepped although gradients were infinite or NaN: let scaler.step(optimizer) decide.",
        ),
        Hint(
            moved_on_bad,
            "A batch that overflowed changed the weights: call scaler.step(optimizer), which skips it. Setting its "
            "gradients to 0 still lets momentum move them.",
        ),
        Hint(
            lambda case, tree, got: case.scaled and 0.9 < loss_ratio(case, tree, got) / case.init_scale < 1.1,
            "The loss that came back is the scaled one: use scaler.scale(loss) for backward only, and return the loss.",
        ),
        Hint(
            as_if(clip_then_unscale),
            "Clipped first and unscaled afterwards: the scaled gradients have a norm far above max_norm, so that "
            "almost nothing is left. Call scaler.unscale_(optimizer) before clipping.",
        ),
        Hint(as_if(never_scaled, slack=20.0), NEVER_SCALED),
        Hint(as_if(never_scaled_clip_first, slack=20.0), NEVER_SCALED),
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
            "The gradients are not clipped when the optimizer uses them: clip between unscale_ and step.",
        ),
        Hint(
            as_if(each_by_itself),
            "Every parameter was clipped by its own norm: max_norm bounds the norm of all gradients together.",
        ),
        Hint(
            as_if(by_value),
            "Every element was clipped by itself, which turns the gradient: use clip_grad_norm_, which shortens it.",
        ),
        Hint(
            lambda case, tree, got: case.scaled and got[SCALES] != in_float32(case, tree)[SCALES],
            "The scale does not follow: call scaler.update() once at the end of every step.",
        ),
    ),
)
