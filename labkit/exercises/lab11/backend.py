"""Lab 11: a backend of one's own for torch.compile, which counts operations and removes what nobody needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.exercises.lab11.programs import BREAK, function_of
from labkit.spec import Answer, Case, Exercise, Run, Tree


@dataclass(frozen=True)
class Program(Case):
    """A function of two tensors, called once with vectors of each of these sizes, and compiled anew for each.

    Program(("a = x + y", "b = a.exp()", "return a"))
    """

    lines: tuple[str, ...]
    sizes: tuple[int, ...] = (4,)


def program_inputs(case: Program, gen: torch.Generator) -> Tree:
    def vector(size: int) -> torch.Tensor:
        return torch.rand(size, generator=gen) + 0.5

    return {"x": [vector(size) for size in case.sizes], "y": [vector(size) for size in case.sizes]}


def drive_backend(ans, case: Program, tree: dict, stage) -> dict[str, Tree]:
    """The results, what became of x and y, and what the backend has counted; operations that run are counted."""
    torch._dynamo.reset()
    backend = ans.CountingBackend()

    raised: list[Exception] = []

    def watched(gm: torch.fx.GraphModule, example_inputs: list) -> Any:
        try:
            compiled = backend(gm, example_inputs)
        except Exception as error:
            raised.append(error)
            raise

        def run(*args: Any) -> Any:
            with stage.meter("ops"):
                return compiled(*args)

        return run

    step = torch.compile(function_of(case.lines), backend=watched, dynamic=False)
    found: dict[str, list] = {"results": [], "x": [], "y": []}
    for x, y in zip(tree["x"], tree["y"], strict=True):
        x, y = x.clone(), y.clone()
        try:
            result = step(x, y)
        except Exception:
            if raised:
                raise raised[0] from None  # Dynamo wraps an error of the backend into one of its own
            raise
        found["results"].append(list(result) if isinstance(result, tuple) else [result])
        found["x"].append(x)
        found["y"].append(y)
    return {**found, "counts": list(backend.counts)}


BACKEND = Exercise(
    id="11-backend",
    title="A backend that counts operations and removes dead ones",
    points=3,
    minutes=25,
    difficulty=1,
    answers=(Answer("CountingBackend"),),
    public=(
        Program(("a = x + y", "b = torch.relu(a)", "c = b * 2", "return c")),
        Program(("a = x * y", "dead = a.exp()", "b = a.sum()", "return b")),
        Program(("a = x * y", "b = a + 1", "c = b.exp()", "d = torch.sqrt(c)", "e = a.mean()", "return e, a")),
        Program(
            ("x.add_(1)", "a = x * 2", "b = a - y", "b[0] = 0", "c = b.cos()", "torch.mul(b, 3, out=y)", "return a")
        ),
        Program(("a = x + y", "dead = a * 5", BREAK, "b = a.sigmoid()", "c = b - x", "c += 1", "return c")),
        Program(("a = F.gelu(x)", "b = a @ y", "unused = b.log()", "return b"), sizes=(3, 6, 4)),
    ),
    inputs=program_inputs,
    drive=drive_backend,
    run=Run(wall_s=20.0),
    meters=("ops",),
)
