"""Lab 03: a training step in float32, as it should be and with each of the usual mistakes in its gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab03.train_step import (
    BACKWARD,
    FORWARD,
    INPUTS,
    KEPT,
    LEARNING_RATE,
    LOSSES,
    SCALES,
    WEIGHTS,
    Classifier,
    Steps,
    flat,
)
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun

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


@once
def in_float32(run: CaseRun[Steps], treat: Treat = clip, clear: bool = True, n_updates: int = 1) -> dict[str, object]:
    """PyTorch's own step without autocast and without a scaler; a batch that overflows float16 is left out.

    treat, clear, n_updates: what a mistaken step does to the gradients, whether it clears them before the next, and
    how often the optimizer steps with them.
    """
    case = run.case
    model = Classifier(run.tree["weights"])
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
            loss = model(run.tree["xs"][step], run.tree["ys"][step])
            loss.backward()
            treat(parameters, case.max_norm, scale)
            for _ in range(n_updates):
                optimizer.step()
            losses[f"in step {step}"] = loss.item()
        weights.append(flat(model))
        scales[f"after step {step}"] = scale
    return {
        KEPT: "float32",
        INPUTS: ["float32"] * case.n_steps,
        FORWARD: [case.dtype] * case.n_steps,
        BACKWARD: [False] * case.n_steps,
        SCALES: scales,
        WEIGHTS: torch.stack(weights),
        LOSSES: losses,
    }


def start(tree: dict) -> torch.Tensor:
    return torch.cat([weight.flatten() for weight in tree["weights"]])


def near(run: CaseRun[Steps], weights: torch.Tensor) -> float:
    """How far off the weights may be that should be these."""
    return CLOSE[run.case.dtype] * float((weights - start(run.tree)).abs().max())


def rounded(weights: torch.Tensor) -> float:
    """How far apart adding to float32 weights may leave two of them: an update may be smaller than their last bit."""
    return torch.finfo(torch.float32).eps * float(weights.abs().max())


def as_if(
    treat: Treat = clip, clear: bool = True, n_updates: int = 1, slack: float = 2.0
) -> Callable[[CaseRun[Steps]], object]:
    """A diagnosis: the weights are those of a step with this mistake, and those of a right one are elsewhere.

    After the first step or after all: some mistakes show late, and others lead so far off that rounding grows.
    slack: more than rounding, for mistakes that leave a gradient in fp16 where it has few bits. Where a batch overflows
    infinity may lead the same mistake anywhere else, which says nothing against it.
    """

    def same(run: CaseRun[Steps]) -> object:
        wrong, right = (in_float32(run, *how)[WEIGHTS] for how in ((treat, clear, n_updates), ()))
        for part in (slice(1), slice(None)):
            close = slack * near(run, wrong[part]) + run.case.n_steps * rounded(wrong[part])
            if (run.got[WEIGHTS] - wrong)[part].abs().max() <= close < (right - wrong)[part].abs().max():
                return True
        return CANNOT_TELL if run.case.overflow_in_steps else False

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


def divided_loss(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    multiply(parameters, scale**-2)
    clip(parameters, max_norm, scale)


def clip_to_a_divided_norm(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    multiply(parameters, scale)
    clip(parameters, max_norm / scale, scale)
    multiply(parameters, 1 / scale)


def never_unscaled(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    multiply(parameters, scale)
    clip(parameters, max_norm, scale)


def each_by_itself(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    for parameter in parameters:
        clip([parameter], max_norm, scale)


def first_alone(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    clip(parameters[:1], max_norm, scale)


def stretched(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in parameters])
    multiply(parameters, max_norm / norm)


def by_value(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    torch.nn.utils.clip_grad_value_(parameters, max_norm)


def not_clipped(parameters: list[torch.nn.Parameter], max_norm: float, scale: float) -> None:
    """Nothing."""
