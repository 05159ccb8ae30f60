"""Lab 11: a model that is served in one graph, whatever the sizes of its batches and the settings of its calls."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from labkit.exercises.lab11.compiler import fresh_compiler
from labkit.exercises.lab11.served import ServedModel
from labkit.spec import Answer, Case, Exercise, Run, Tree

WIDTH = 8
FIRST_STEPS = 12
"""Calls of a model that no compiler can keep up with: more than any limit on versions that is meant here."""
LOW_LIMIT = 3
"""The limit on versions of that model: each takes a compile, and three of them show as much as eight."""


@dataclass(frozen=True)
class Serving(Case):
    """Calls of one model: batches of these sizes, with these temperatures in turn.

    runaway: make_step is given a model of the check's own, which no compiler can keep up with.
    """

    sizes: tuple[int, ...] = (4, 4, 4)
    temperatures: tuple[float, ...] = (1.0,)
    n_layers: int = 2
    runaway: bool = False

    def calls(self) -> list[tuple[int, float]]:
        """Size and temperature of each call."""
        return [(size, self.temperatures[n % len(self.temperatures)]) for n, size in enumerate(self.sizes)]


class Runaway(nn.Module):
    """Multiplies by a number of Python that is another one in every call."""

    def __init__(self) -> None:
        super().__init__()
        self.n_calls = 0

    def forward(self, x: torch.Tensor, temperature: Any) -> torch.Tensor:
        self.n_calls += 1
        return x * self.n_calls / temperature


def serving_inputs(case: Serving, gen: torch.Generator) -> Tree:
    model = ServedModel(WIDTH, case.n_layers)
    weights = {name: torch.randn(value.shape, generator=gen) for name, value in model.state_dict().items()}
    return {"batches": [torch.randn(size, WIDTH, generator=gen) for size in case.sizes], "weights": weights}


def drive_recompiles(ans, case: Serving, tree: dict, stage) -> Tree:
    """The results, the count of calls, and the rows that the graph was given in each; what was compiled is counted.

    The results end where the limit on versions raises: why, the guards that failed say.
    """
    rows: list[int] = []

    def backend(gm: torch.fx.GraphModule, example_inputs: list) -> Any:
        def run(*args: Any) -> Any:
            rows.extend(_rows(args))
            return gm.forward(*args)

        return run

    with fresh_compiler():
        if case.runaway:
            with stage.meter("compile"):
                pass  # no budget is meant for this model
            with torch._dynamo.config.patch(recompile_limit=LOW_LIMIT):
                return {"raised": _raises_at_the_limit(ans.make_step(Runaway(), backend))}
        model = ans.SteadyModel(WIDTH, case.n_layers)
        missing = model.load_state_dict(tree["weights"], strict=False).missing_keys
        if lost := [name for name, _ in model.named_parameters() if name in missing]:
            raise AttributeError(f"the model has parameters that ServedModel does not have: {', '.join(lost)}")
        step = ans.make_step(model, backend)
        results: list[torch.Tensor] = []
        limit_hit = torch._dynamo.exc.FailOnRecompileLimitHit
        with stage.meter("compile"), contextlib.suppress(limit_hit):
            for batch, (_, temperature) in zip(tree["batches"], case.calls(), strict=True):
                results.append(step(batch, temperature).detach())
        return {"results": results, "n_calls": int(model.n_calls), "rows": rows}


def _rows(args: tuple) -> list[int]:
    """The rows of the batch among what a graph is given."""
    found = [one.shape[0] for one in args if isinstance(one, torch.Tensor) and one.dim() == 2 and not _is_weight(one)]
    return found[:1]


def _is_weight(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, nn.Parameter)


def _raises_at_the_limit(step: Any) -> bool:
    """Whether it raises once a model has been compiled too often, and not before."""
    limit_hit = torch._dynamo.exc.FailOnRecompileLimitHit
    for number in range(FIRST_STEPS):
        try:
            step(torch.ones(2, WIDTH), 1.0)
        except limit_hit:
            return number > 1
    return False


RECOMPILES = Exercise(
    id="11-recompiles",
    title="One graph for changing batches and settings",
    points=5,
    minutes=35,
    difficulty=3,
    answers=(Answer("SteadyModel"), Answer("make_step")),
    public=(
        Serving(sizes=(4,) * 12, n_layers=1),
        Serving(sizes=(2, 3, 5, 8, 9, 1)),
        Serving(sizes=(6, 6, 6, 6), temperatures=(0.5, 0.7, 1.0, 1.3)),
        Serving(sizes=(3, 7, 2, 1, 12, 1, 5, 4, 9, 2, 6, 8), temperatures=(0.5, 1.0, 0.8), n_layers=4),
        Serving(runaway=True),
    ),
    inputs=serving_inputs,
    drive=drive_recompiles,
    run=Run(wall_s=30.0),
    meters=("compile",),
)
