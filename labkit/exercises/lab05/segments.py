"""Lab 05: into how many segments a deep chain is cut, and running it so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import CheckpointFunction

from labkit.exercises.lab05.warm import warm_up_autograd
from labkit.spec import Answer, Case, Exercise

WIDTH, N_ROWS = 6, 5


@dataclass(frozen=True)
class Depth(Case):
    """n_layers layers, whose inside takes `cost` times a layer's output; they are then run in n_segments segments."""

    n_layers: int
    cost: float
    n_segments: int


@dataclass
class Log:
    """runs: how often each layer ran. segments: the layers in the first run of each checkpoint, in order. outside:
    those that no checkpoint was around."""

    runs: list[int]
    segments: list[list[int]] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)

    def note(self, index: int) -> None:
        """A layer runs. Inside a checkpoint's first run no graph is recorded."""
        self.runs[index] += 1
        if not torch.is_grad_enabled():
            self.segments[-1].append(index)
        elif self.runs[index] == 1:
            self.outside.append(index)


def depth_inputs(case: Depth, gen: torch.Generator) -> dict[str, Any]:
    """x (N_ROWS, WIDTH), and the matrix of each layer."""
    weights = [torch.randn(WIDTH, WIDTH, generator=gen) * WIDTH**-0.5 for _ in range(case.n_layers)]
    return {"x": torch.randn(N_ROWS, WIDTH, generator=gen), "weights": weights}


def make_layers(weights: list[Tensor], log: Log) -> list[Callable[[Tensor], Tensor]]:
    """Functions x -> x + tanh(x w), which write down that they ran."""

    def layer(index: int) -> Callable[[Tensor], Tensor]:
        def run(x: Tensor) -> Tensor:
            log.note(index)
            return x + torch.tanh(x @ weights[index])

        return run

    return [layer(index) for index in range(len(weights))]


def run_layers(run: Callable[..., Tensor], case: Depth, tree: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """out and the gradients of its mean square, of x and of every matrix; and what ran.

    run: (layers, x, n_segments, checkpoint) -> out.
    """
    x = tree["x"].to(device).detach().requires_grad_()
    weights = [weight.to(device).detach().requires_grad_() for weight in tree["weights"]]
    log = Log([0] * case.n_layers)

    def checkpoint(fn: Callable[..., Tensor], *args: Any) -> Tensor:
        # There is nothing random in a layer. CheckpointFunction is what torch.utils.checkpoint uses as well.
        log.segments.append([])
        return CheckpointFunction.apply(fn, False, *args)

    out = run(make_layers(weights, log), x, case.n_segments, checkpoint)
    out.square().mean().backward()
    return {
        "out": out.detach(),
        "grads": {"x": x.grad, "weights": [weight.grad for weight in weights]},
        "runs": torch.tensor(log.runs),
        "segments": log.segments,
        "outside": log.outside,
    }


def drive_segments(ans, case: Depth, tree: dict, stage) -> dict[str, Any]:
    """n_segments: what is best for the case. The rest: a run in the case's own number of segments."""
    warm_up_autograd(stage.device)
    best = ans.best_segments(case.n_layers, case.cost)
    return {"n_segments": best, **run_layers(ans.run_in_segments, case, tree, stage.device)}


SEGMENTS = Exercise(
    id="05-segments",
    title="How many segments?",
    points=3,
    minutes=15,
    difficulty=2,
    answers=(Answer("best_segments"), Answer("run_in_segments")),
    public=(
        Depth(36, 1.0, 6),
        Depth(64, 4.0, 8),
        Depth(50, 2.644, 7),
        Depth(32, 34.0, 12),
        Depth(9, 0.02, 1),
        Depth(10, 3.0, 4),
    ),
    inputs=depth_inputs,
    drive=drive_segments,
)
