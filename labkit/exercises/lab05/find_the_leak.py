"""Lab 05: a training script that holds on to memory, and is to be repaired."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.exercises.lab05.warm import warm_up_autograd
from labkit.spec import Answer, Case, Exercise, Run

LEARNING_RATE = 0.05
EVAL_SCALE = 0.5
"""What the hidden layer's output is multiplied with in evaluation."""


@dataclass(frozen=True)
class LeakyTraining(Case):
    """n_steps steps of a network width -> n_hidden -> width on n_rows rows, and a validation loss after each step."""

    n_steps: int = 14
    n_rows: int = 96
    width: int = 16
    n_hidden: int = 128

    @property
    def hidden_bytes(self) -> int:
        """One hidden activation in float32."""
        return 4 * self.n_rows * self.n_hidden

    @property
    def parameter_bytes(self) -> int:
        return 4 * (2 * self.width * self.n_hidden + self.width + self.n_hidden)


class ScaledGelu(nn.Module):
    """A GELU that is smaller in evaluation: as with dropout the mode matters, and here nothing is random."""

    def forward(self, x: Tensor) -> Tensor:
        out = F.gelu(x)
        return out if self.training else EVAL_SCALE * out


class PlainSgd:
    """Gradient descent with the two methods of a torch.optim optimizer that a training loop calls."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self._parameters = parameters

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self._parameters:
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad.detach().zero_()

    def step(self) -> None:
        with torch.no_grad():
            for parameter in self._parameters:
                if parameter.grad is not None:
                    parameter.sub_(LEARNING_RATE * parameter.grad)


@dataclass
class Held:
    """For each step, the bytes of the earlier steps' hidden activations that are still alive, by what they served."""

    n_bytes: int = 0
    validating: bool = False

    def __post_init__(self) -> None:
        self._training: list[weakref.ref] = []
        self._validation: list[weakref.ref] = []
        self.training_bytes: list[int] = []
        self.validation_bytes: list[int] = []

    def see(self, module: nn.Module, args: tuple, out: Tensor) -> None:
        """A forward hook: what a layer gave, and when it goes."""
        (self._validation if self.validating else self._training).append(weakref.ref(out.untyped_storage()))

    def count(self) -> None:
        """A step is over."""
        for refs, counts in ((self._training, self.training_bytes), (self._validation, self.validation_bytes)):
            counts.append(sum(kept.nbytes() for ref in refs if (kept := ref()) is not None))


class Batches:
    """Iterates over (x, y); before each batch it looks at what the steps before left alive."""

    def __init__(self, xs: Tensor, ys: Tensor, held: Held) -> None:
        self._pairs, self._held = list(zip(xs, ys, strict=True)), held

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for number, pair in enumerate(self._pairs):
            if number:
                self._held.count()
            yield pair


def training_inputs(case: LeakyTraining, gen: torch.Generator) -> dict[str, Any]:
    """x, y (n_steps, n_rows, width), x_val, y_val (n_rows, width), and the parameters of the two linear layers."""
    width, n_hidden = case.width, case.n_hidden

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(shape, generator=gen)

    return {
        "x": draw(case.n_steps, case.n_rows, width),
        "y": draw(case.n_steps, case.n_rows, width),
        "x_val": draw(case.n_rows, width),
        "y_val": draw(case.n_rows, width),
        "parameters": [
            draw(n_hidden, width, scale=2 * width**-0.5),
            draw(n_hidden),
            draw(width, n_hidden, scale=2 * n_hidden**-0.5),
            draw(width),
        ],
    }


def build(case: LeakyTraining, tree: dict[str, Any], device: torch.device) -> nn.Sequential:
    """The model with the given parameters: Linear, ScaledGelu, Linear."""
    model = nn.Sequential(nn.Linear(case.width, case.n_hidden), ScaledGelu(), nn.Linear(case.n_hidden, case.width))
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), tree["parameters"], strict=True):
            parameter.copy_(value)
    return model.to(device)


Train = Callable[..., Any]
"""(model, optimizer, batches, validation) -> (validation losses, mean magnitudes of the hidden layer)."""


def run_training(
    train: Train, case: LeakyTraining, tree: dict[str, Any], model: nn.Module, device: torch.device
) -> dict[str, Any]:
    """What train returned, the parameters that it left, and what was alive from step to step."""
    held = Held()
    ours = model[1].register_forward_hook(held.see)
    n_hooks = _n_hooks(model)
    x_val = tree["x_val"].to(device)
    # The validation batch is known by its object: only a call with it counts as validation.
    watch = model.register_forward_pre_hook(lambda module, args: setattr(held, "validating", args[0] is x_val))
    batches = Batches(tree["x"].to(device), tree["y"].to(device), held)
    optimizer = PlainSgd(list(model.parameters()))
    made = train(model, optimizer, batches, (x_val, tree["y_val"].to(device)))
    held.count()
    watch.remove()
    left = _n_hooks(model) - n_hooks
    ours.remove()
    losses, sizes = made if isinstance(made, tuple | list) and len(made) == 2 else (made, None)
    return {
        "losses": _plain(losses),
        "sizes": _plain(sizes),
        "parameters": [parameter.detach().clone() for parameter in model.parameters()],
        "training_bytes": torch.tensor(held.training_bytes),
        "validation_bytes": torch.tensor(held.validation_bytes),
        "hooks_left": left,
    }


def _plain(values: object) -> object:
    """A list of numbers as it is; one of tensors without their graphs, so that the result can be sent."""
    if not isinstance(values, list | tuple):
        return values
    return [value.detach().reshape(-1) if isinstance(value, Tensor) else value for value in values]


def _n_hooks(model: nn.Module) -> int:
    return sum(
        len(hooks)
        for module in model.modules()
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    )


def drive_leak(ans, case: LeakyTraining, tree: dict, stage) -> dict[str, Any]:
    """Two models are trained: a small one, to get going, and the one that is measured."""
    warm_up_autograd(stage.device)
    few = LeakyTraining(2, 3, 4, 5)
    some = training_inputs(few, torch.Generator().manual_seed(1))
    small, model = build(few, some, stage.device), build(case, tree, stage.device)
    with stage.meter("memory"):
        run_training(ans.train, few, some, small, stage.device)
        with stage.meter("saved"):
            return run_training(ans.train, case, tree, model, stage.device)


FIND_THE_LEAK = Exercise(
    id="05-find-the-leak",
    title="Three leaks in forty lines",
    points=3,
    minutes=15,
    difficulty=2,
    answers=(Answer("train"),),
    public=(LeakyTraining(), LeakyTraining(16, 64, 24, 160), LeakyTraining(1)),
    inputs=training_inputs,
    drive=drive_leak,
    run=Run(wall_s=20.0),
    meters=("memory", "saved"),
)
