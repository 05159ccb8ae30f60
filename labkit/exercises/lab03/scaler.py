"""Lab 03: a dynamic loss scaler, played against an optimizer while gradients overflow here and there."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise, Tree


@dataclass(frozen=True)
class Training(Case):
    """n_steps of an optimizer ("sgd" with momentum, or "adamw") under a scaler with these four settings.

    infinite, nan: the steps at which one gradient is. clip: the steps at which `unscale_` is called beforehand.
    """

    optimizer: str
    n_steps: int
    init_scale: float = 1024.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 3
    infinite: tuple[int, ...] = ()
    nan: tuple[int, ...] = ()
    clip: tuple[int, ...] = ()


def training_inputs(case: Training, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """weights: (2, 4), a row for each parameter; grads: (n_steps, 2, 4), float32 from 0.5 to 2, the bad ones put in."""
    weights = torch.randn(2, 4, generator=gen)
    grads = 0.5 + 1.5 * torch.rand(case.n_steps, 2, 4, generator=gen)
    grads = torch.where(torch.rand(grads.shape, generator=gen) < 0.5, -grads, grads)
    for steps, value in ((case.infinite, torch.inf), (case.nan, torch.nan)):
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


def play(scaler: object, case: Training, tree: dict) -> dict[str, Tree]:
    """Train two parameters with a scaler that has GradScaler's methods, and write down what is to be seen.

    scaled: the losses that went into `backward`. unscaled: the gradients after `unscale_`, at the steps of `case.clip`.
    scales: before the first step and after each. weights and state: (n_steps, ...), zeros where there is no state yet.
    """
    parameters = [torch.nn.Parameter(row.clone()) for row in tree["weights"]]
    # It takes no part in the loss and never has a gradient, like the unused parameters of real models.
    unused = torch.nn.Parameter(torch.ones(2))
    kind, settings = (torch.optim.SGD, {"momentum": 0.9}) if case.optimizer == "sgd" else (torch.optim.AdamW, {})
    optimizer = kind([unused, *parameters], lr=0.01, foreach=False, **settings)
    scaled, unscaled, weights, state = [], [], [], []
    scales = [_number(scaler.get_scale())]
    for step, grads in enumerate(tree["grads"]):
        optimizer.zero_grad()
        loss = scaler.scale(HalfPrecisionLoss.apply(torch.stack(parameters), grads))
        scaled.append(_number(loss))
        loss.backward()
        if step in case.clip:
            scaler.unscale_(optimizer)
            unscaled.append(torch.stack([parameter.grad.clone() for parameter in parameters]))
        scaler.step(optimizer)
        scaler.update()
        scales.append(_number(scaler.get_scale()))
        weights.append(torch.stack([parameter.detach().clone() for parameter in parameters]))
        state.append(torch.stack([_state(optimizer, parameter) for parameter in parameters]))
    return {
        "scales": scales,
        "scaled": scaled,
        "unscaled": unscaled,
        "weights": torch.stack(weights),
        "state": torch.stack(state),
    }


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


def drive_scaler(ans, case: Training, tree: dict, stage) -> dict[str, Tree]:
    """On the CPU, whatever the machine has: what is studied is the bookkeeping."""
    settings = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")
    return play(ans.LossScaler(**{name: getattr(case, name) for name in settings}), case, tree)


LOSS_SCALER = Exercise(
    id="03-loss-scaler",
    title="A dynamic loss scaler",
    points=4,
    minutes=15,
    difficulty=2,
    answers=(Answer("LossScaler"),),
    public=(
        Training("sgd", 8),
        Training("sgd", 8, nan=(0, 1, 3), infinite=(5,)),
        Training("adamw", 8, nan=(1, 2)),
        Training("adamw", 10, infinite=(2,), nan=(6,), clip=(0, 2, 3, 4, 8)),
        Training("sgd", 12, init_scale=2.0**20, growth_factor=4.0, backoff_factor=0.25, growth_interval=2),
        Training("adamw", 4, infinite=(0, 1, 2, 3)),
    ),
    inputs=training_inputs,
    drive=drive_scaler,
    forbids=("torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler"),
)
