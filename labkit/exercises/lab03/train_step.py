"""Lab 03: one training step in mixed precision, on a small classifier that notes in which dtypes it is run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.spec import Answer, Case, Exercise, Tree

WIDTHS = (16, 32, 8)
LEARNING_RATE = 0.1
BEYOND_FP16 = 1e6
"""The size of the inputs of a bad batch: infinite in float16."""


@dataclass(frozen=True)
class Steps(Case):
    """n_steps of SGD with momentum, gradients clipped to max_norm. dtype: what autocast computes in.

    overflow_in_steps: those whose batch overflows float16. With bfloat16 the scaler is handed over switched off.
    """

    dtype: str
    max_norm: float
    n_steps: int = 3
    overflow_in_steps: tuple[int, ...] = ()
    init_scale: float = 2.0**12
    n_rows: int = 64

    @property
    def torch_dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype)

    @property
    def scaled(self) -> bool:
        return self.dtype == "float16"


KEPT, INPUTS, FORWARD = "dtype of the weights", "dtype of x in each forward pass", "dtype of each forward pass"
BACKWARD, SCALES = "autocast during each backward pass", "the scaler's scale"
WEIGHTS, LOSSES = "weights after each step", "returned loss"


def step_inputs(case: Steps, gen: torch.Generator) -> dict[str, Tree]:
    """weights: two float32 matrices; xs: (n_steps, n_rows, features); ys: the classes."""
    shapes = tuple(zip(WIDTHS[1:], WIDTHS))
    weights = [torch.randn(shape, generator=gen) * shape[1] ** -0.5 for shape in shapes]
    xs = torch.randn(case.n_steps, case.n_rows, WIDTHS[0], generator=gen)
    for step in case.overflow_in_steps:
        xs[step] *= BEYOND_FP16
    return {"weights": weights, "xs": xs, "ys": torch.randint(WIDTHS[-1], xs.shape[:2], generator=gen)}


class Classifier(nn.Module):
    """model(x, y) is the mean cross-entropy. Each call adds an element to `input_dtypes`, `hidden_dtypes` and, when it
    goes backward, to `backward_in_autocast`.
    """

    def __init__(self, weights: list[Tensor]) -> None:
        super().__init__()
        self.up, self.down = (nn.Linear(*weight.shape[::-1], bias=False) for weight in weights)
        for layer, weight in zip(self.children(), weights):
            layer.weight = nn.Parameter(weight.clone())
        self.input_dtypes: list[str] = []
        self.hidden_dtypes: list[str] = []
        self.backward_in_autocast: list[bool] = []

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        hidden = self.up(x)
        self.input_dtypes.append(str(x.dtype).removeprefix("torch."))
        self.hidden_dtypes.append(str(hidden.dtype).removeprefix("torch."))
        if hidden.requires_grad:
            kind = x.device.type
            hidden.register_hook(lambda _: self.backward_in_autocast.append(torch.is_autocast_enabled(kind)))
        return F.cross_entropy(self.down(F.gelu(hidden)), y)


def flat(model: nn.Module) -> Tensor:
    """All weights in one row, float32."""
    return torch.cat([weight.detach().float().flatten() for weight in model.parameters()])


def drive_step(ans, case: Steps, tree: dict, stage) -> dict[str, Tree]:
    """What is to be seen after each step: the loss that was returned (None for a bad batch), the weights, the scale.

    INPUTS, FORWARD: the dtypes of x and of what the first layer returned, for every call of the model; BACKWARD:
    whether its backward pass ran under autocast.
    """
    kind = stage.device.type
    model = Classifier(tree["weights"]).to(stage.device)
    groups = [{"params": [weight]} for weight in model.parameters()]
    optimizer = torch.optim.SGD(groups, lr=LEARNING_RATE, momentum=0.9)
    scaler = torch.amp.GradScaler(kind, init_scale=case.init_scale, enabled=case.scaled)
    # As in the middle of a training: a scaler that has never scaled anything refuses to unscale.
    scaler.scale(torch.zeros((), device=stage.device))
    losses, weights, scales, kept = {}, [], {}, set()
    for step in range(case.n_steps):
        x, y = tree["xs"][step].to(stage.device), tree["ys"][step].to(stage.device)
        loss = ans.train_step(model, x, y, optimizer, scaler, case.max_norm, case.torch_dtype)
        losses[f"in step {step}"] = None if step in case.overflow_in_steps else _number(loss)
        weights.append(flat(model))
        kept |= {str(weight.dtype).removeprefix("torch.") for weight in model.parameters()}
        scales[f"after step {step}"] = scaler.get_scale()
    return {
        KEPT: ", ".join(sorted(kept)),
        INPUTS: model.input_dtypes,
        FORWARD: model.hidden_dtypes,
        BACKWARD: model.backward_in_autocast,
        SCALES: scales,
        WEIGHTS: torch.stack(weights),
        LOSSES: losses,
    }


def _number(value: object) -> object:
    return value.item() if isinstance(value, Tensor) and value.numel() == 1 else value


TRAIN_STEP = Exercise(
    id="03-train-step",
    title="One step in mixed precision",
    points=4,
    minutes=10,
    difficulty=2,
    answers=(Answer("train_step"),),
    public=(
        Steps("bfloat16", max_norm=100.0),
        Steps("float16", max_norm=100.0, init_scale=2.0**16),
        Steps("float16", max_norm=0.02),
        Steps("float16", max_norm=0.02, n_steps=4, overflow_in_steps=(1,)),
        Steps("bfloat16", max_norm=0.02),
        Steps("float16", max_norm=0.01, n_steps=3, overflow_in_steps=(0, 2), init_scale=2.0**8),
    ),
    inputs=step_inputs,
    drive=drive_step,
)
