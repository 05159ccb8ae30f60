"""Lab 05: backpropagation that keeps the input of the chain and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab05.warm import warm_up_autograd
from labkit.spec import Answer, Case, Exercise, Run

Layer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Tower(Case):
    """n_layers layers of `width` on n_rows rows; the last one ends in the loss."""

    n_layers: int
    n_rows: int = 512
    width: int = 32

    @property
    def x_bytes(self) -> int:
        """One activation in float32."""
        return 4 * self.n_rows * self.width

    @property
    def parameter_bytes(self) -> int:
        return 4 * self.n_layers * self.width * (self.width + 1)


SMALL = Tower(2, 3, 4)


def small_inputs() -> dict[str, Any]:
    """The inputs of the first calls, the same in every run."""
    return tower_inputs(SMALL, torch.Generator().manual_seed(1))


def tower_inputs(case: Tower, gen: torch.Generator) -> dict[str, Any]:
    """x and probe (n_rows, width), and weight and bias of each layer."""
    layers = [
        {
            "weight": torch.randn(case.width, case.width, generator=gen) * case.width**-0.5,
            "bias": 1.5 + 0.3 * torch.randn(case.width, generator=gen),
        }
        for _ in range(case.n_layers)
    ]
    x, probe = torch.randn(2, case.n_rows, case.width, generator=gen).unbind()
    return {"x": x.contiguous(), "probe": probe.contiguous(), "layers": layers}


def make_layers(parameters: Sequence[dict[str, Tensor]], probe: Tensor, runs: list[int]) -> list[Layer]:
    """Functions x -> x * sigmoid(x w + b); the last one returns the mean of that times the probe, a scalar."""

    def layer(index: int) -> Layer:
        mine = parameters[index]

        def run(x: Tensor) -> Tensor:
            runs[index] += 1
            out = x * torch.sigmoid(F.linear(x, mine["weight"], mine["bias"]))
            return (out * probe).mean() if index == len(parameters) - 1 else out

        return run

    return [layer(index) for index in range(len(parameters))]


def run_tower(
    backpropagate: Callable[[list[Layer], Tensor], Any], case: Tower, tree: dict[str, Any], device: torch.device
) -> dict[str, Any]:
    """loss, dx (its gradient with respect to x), the parameters' gradients, and how often the layers ran in all.

    with_graph: whether the loss came back with a graph behind it.
    """
    parameters = [
        {name: value.to(device).detach().requires_grad_() for name, value in layer.items()} for layer in tree["layers"]
    ]
    runs = [0] * case.n_layers
    loss, dx = backpropagate(make_layers(parameters, tree["probe"].to(device), runs), tree["x"].to(device))
    grads = [{name: value.grad for name, value in layer.items()} for layer in parameters]
    with_graph = isinstance(loss, Tensor) and loss.requires_grad
    if isinstance(loss, Tensor):
        loss = loss.detach()
    return {"loss": loss, "dx": dx, "grads": grads, "forwards": sum(runs), "with_graph": with_graph}


def drive_low_memory(ans, case: Tower, tree: dict, stage) -> dict[str, Any]:
    """One pass, measured together with the student's first two calls on other numbers, the same x for both.

    second_dx: the gradient by x of the second of these.
    """
    warm_up_autograd(stage.device)
    some = small_inputs()
    some["x"] = some["x"].to(stage.device)
    with stage.meter("memory"):
        run_tower(ans.low_memory_backward, SMALL, some, stage.device)
        second = run_tower(ans.low_memory_backward, SMALL, some, stage.device)
        return {**run_tower(ans.low_memory_backward, case, tree, stage.device), "second_dx": second["dx"]}


LOW_MEMORY = Exercise(
    id="05-low-memory",
    title="Keep only the input",
    points=0.4,
    optional=True,
    minutes=15,
    difficulty=3,
    answers=(Answer("low_memory_backward"),),
    public=(Tower(3), Tower(12), Tower(1), Tower(8, 256, 48)),
    inputs=tower_inputs,
    drive=drive_low_memory,
    run=Run(wall_s=20.0),
    meters=("memory",),
    forbids=("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"),
)
