"""Lab 03: a dynamic loss scaler, played against an optimizer while gradients overflow here and there."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Tree


@dataclass(frozen=True)
class ScaledTraining(Case):
    """n_steps of an optimizer ("sgd" with momentum, or "adamw") under a scaler with these four settings.

    infinity_in_steps, nan_in_steps: where one gradient is. unscale_in_steps: where `unscale_` is called before `step`.
    n_param_groups: 1, or 2 with one of the trained parameters in each.
    """

    optimizer: str
    n_steps: int
    n_param_groups: int = 1
    infinity_in_steps: tuple[int, ...] = ()
    nan_in_steps: tuple[int, ...] = ()
    unscale_in_steps: tuple[int, ...] = ()
    init_scale: float = 1024.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 3


SCALE, SCALED, LOSS, UNSCALED = "get_scale()", "scale(loss)", "the loss itself", "gradients after unscale_"
WEIGHTS, STATE = "weights after each step", "optimizer state after each step"
RARE = "the parameter that only odd steps use, and its state"

LARGE = 1e5
"""The gradient of that parameter: finite in float32, which it never leaves."""


def training_inputs(case: ScaledTraining, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """weights: (2, 4), a row for each parameter; grads: (n_steps, 2, 4), float32 from 0.5 to 2, the bad ones put in."""
    weights = torch.randn(2, 4, generator=gen)
    grads = 0.5 + 1.5 * torch.rand(case.n_steps, 2, 4, generator=gen)
    grads = torch.where(torch.rand(grads.shape, generator=gen) < 0.5, -grads, grads)
    for steps, value in ((case.infinity_in_steps, torch.inf), (case.nan_in_steps, torch.nan)):
        for nth, step in enumerate(steps):
            # In both parameters at first; then by turns in one of them, and the other is fine.
            rows = [0, 1] if nth == 0 else [1 - nth % 2]
            grads[step, rows, int(torch.randint(4, (), generator=gen))] = value
    return {"weights": weights, "grads": grads}


class HalfPrecisionLoss(torch.autograd.Function):
    """A finite loss with given gradients, which go through float16: times a scale that is too large they overflow."""

    @staticmethod
    def forward(ctx, weights: torch.Tensor, grads: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(grads)
        return weights.square().mean()

    @staticmethod
    def backward(ctx, upstream: torch.Tensor) -> tuple[torch.Tensor, None]:
        (grads,) = ctx.saved_tensors
        return (grads * upstream).half().float(), None


class LargeGradient(torch.autograd.Function):
    """Adds nothing to a loss, and a gradient of LARGE times the scale in float32."""

    @staticmethod
    def forward(ctx, weights: torch.Tensor) -> torch.Tensor:
        ctx.shape = weights.shape
        return weights.new_zeros(())

    @staticmethod
    def backward(ctx, upstream: torch.Tensor) -> torch.Tensor:
        return (upstream * LARGE).expand(ctx.shape)


def play(scaler: object, case: ScaledTraining, tree: dict) -> dict[str, Tree]:
    """Train three parameters with a scaler that has GradScaler's methods, and write down what is to be seen.

    SCALE: before the first step and after each. SCALED: the losses that went into `backward`; LOSS: what was scaled,
    afterwards. UNSCALED: the gradients after `unscale_`, where it was called and the step is not thrown away. WEIGHTS
    and STATE: (n_steps, 2, ...), zeros where there is no state yet; RARE: (n_steps, 7), both for the third one.
    """
    parameters = [torch.nn.Parameter(row.clone()) for row in tree["weights"]]
    # It has no gradient in the even steps, like a part of a model that not every batch goes through.
    rare = torch.nn.Parameter(torch.ones(2))
    kind, settings = (torch.optim.SGD, {"momentum": 0.9}) if case.optimizer == "sgd" else (torch.optim.AdamW, {})
    groups = [[rare, *parameters]] if case.n_param_groups == 1 else [[rare, parameters[0]], parameters[1:]]
    optimizer = kind([{"params": group} for group in groups], lr=0.01, foreach=False, **settings)
    scaled, losses, unscaled, weights, state, rarely = {}, {}, {}, [], [], []
    scales = {"at the start": scaler.get_scale()}
    for step, grads in enumerate(tree["grads"]):
        optimizer.zero_grad()
        loss = HalfPrecisionLoss.apply(torch.stack(parameters), grads)
        if step % 2:
            loss = loss + LargeGradient.apply(rare)
        scaled[f"in step {step}"] = _backward(scaler.scale(loss), loss, parameters[0])
        losses[f"in step {step}"] = loss.item()
        finite = all(parameter.grad.isfinite().all() for parameter in parameters)
        if step in case.unscale_in_steps:
            scaler.unscale_(optimizer)
            if finite:
                unscaled[f"in step {step}"] = torch.stack([parameter.grad.clone() for parameter in parameters])
        scaler.step(optimizer)
        scaler.update()
        scales[f"after step {step}"] = scaler.get_scale()
        weights.append(torch.stack([parameter.detach().clone() for parameter in parameters]))
        state.append(torch.stack([_state(optimizer, parameter) for parameter in parameters]))
        rarely.append(torch.cat([rare.detach().clone(), _state(optimizer, rare)]))
    return {
        SCALE: scales,
        SCALED: scaled,
        LOSS: losses,
        UNSCALED: unscaled,
        WEIGHTS: torch.stack(weights),
        STATE: torch.stack(state),
        RARE: torch.stack(rarely),
    }


def _backward(scaled: object, loss: torch.Tensor, weights: torch.nn.Parameter) -> object:
    """Go backward, and say from what; from the plain loss where that does not reach the weights, to see the rest."""
    if isinstance(scaled, torch.Tensor) and scaled.requires_grad:
        scaled.backward()
        if weights.grad is not None:
            return _number(scaled)
    loss.backward()
    return f"a {type(scaled).__name__} from which backward() does not reach the weights"


def _state(optimizer: torch.optim.Optimizer, parameter: torch.nn.Parameter) -> torch.Tensor:
    """Momentum, or both moments and the count of steps, in one row of 9 numbers."""
    held = optimizer.state.get(parameter, {})
    nothing = torch.zeros_like(parameter)
    first = held.get("momentum_buffer", held.get("exp_avg"))
    second, n_steps = held.get("exp_avg_sq"), held.get("step")
    parts = (nothing if part is None else part for part in (first, second))
    return torch.cat([*parts, torch.tensor([0.0 if n_steps is None else float(n_steps)])]).detach()


def _number(value: object) -> object:
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value


def drive_scaler(ans, case: ScaledTraining, tree: dict, stage) -> dict[str, Tree]:
    """On the CPU, whatever the machine has: what is studied is the bookkeeping."""
    settings = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")
    return play(ans.LossScaler(**{name: getattr(case, name) for name in settings}), case, tree)


LOSS_SCALER = Exercise(
    id="03-loss-scaler",
    title="A dynamic loss scaler",
    points=4,
    minutes=20,
    difficulty=2,
    answers=(Answer("LossScaler"),),
    public=(
        ScaledTraining("sgd", 8),
        ScaledTraining("sgd", 8, nan_in_steps=(0, 1, 3), infinity_in_steps=(5,)),
        ScaledTraining("adamw", 8, nan_in_steps=(1, 2), n_param_groups=2),
        ScaledTraining("adamw", 10, infinity_in_steps=(2,), nan_in_steps=(6,), unscale_in_steps=(0, 2, 3, 4, 8)),
        ScaledTraining("sgd", 12, init_scale=2.0**20, growth_factor=4.0, backoff_factor=0.125, growth_interval=2),
        ScaledTraining("adamw", 4, infinity_in_steps=(0, 1, 2, 3), init_scale=4.0),
    ),
    inputs=training_inputs,
    drive=drive_scaler,
    forbids=(
        "torch.amp.GradScaler",
        "torch.amp.grad_scaler.GradScaler",
        "torch.cuda.amp.GradScaler",
        "torch.cpu.amp.GradScaler",
        "torch._amp_foreach_non_finite_check_and_unscale_",
        "torch._amp_update_scale_",
    ),
)
