"""Lab 11: what tracing and scripting lose, shown by examples, and an export that keeps a branch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labkit.exercises.lab11.compiler import fresh_compiler
from labkit.spec import Answer, Case, Exercise, Run, Tree


class Gate(nn.Module):
    """Sends a batch through one of two layers, whichever the sign of its sum says."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return self.up(x)
        return self.down(x)


@dataclass(frozen=True)
class Exported(Case):
    """A gate that is exported with a batch of the first size, and then runs on batches of all sizes, of either sign."""

    width: int = 4
    sizes: tuple[int, ...] = (3, 5)


def exported_inputs(case: Exported, gen: torch.Generator) -> Tree:
    names = Gate(case.width).state_dict()
    return {
        "weights": {name: torch.randn(value.shape, generator=gen) for name, value in names.items()},
        "batches": [_batch(size, case.width, sign, gen) for size in case.sizes for sign in (1, -1)],
    }


def _batch(size: int, width: int, sign: int, gen: torch.Generator) -> Tensor:
    """Rows whose sum has this sign. The first is small and has the other sign: it does not decide."""
    batch = sign * (torch.rand(size, width, generator=gen) + 0.1)
    batch[0] *= -0.05
    return batch


def drive_trace_or_script(ans, case: Exported, tree: dict, stage) -> Tree:
    """What each counter-example does as Python has it and as TorchScript has it, and what the exported gate gives."""
    # torch.cond is traced by Dynamo, which remembers sizes from one export to the next.
    with fresh_compiler(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        gate = Gate(case.width)
        gate.load_state_dict(tree["weights"])
        program = ans.export_gate(gate, tree["batches"][0].clone())
        run = program.module()
        return {
            "branch": _branch(*ans.branch_lost()),
            "mode": _mode(*ans.mode_lost()),
            "script": _script(*ans.fails_late()),
            "keeps_the_branch": any("cond" in str(node.target) for node in program.graph.nodes),
            "exported": [_result(run, batch) for batch in tree["batches"]],
        }


def _branch(function: Callable, example: Tensor, other: Tensor) -> Tree:
    traced = torch.jit.trace(function, (example,), check_trace=False)
    return {
        "same_shape": example.shape == other.shape and example.dtype == other.dtype,
        "example": [function(example), traced(example)],
        "other": [function(other), traced(other)],
        "again": function(other),
    }


def _mode(module: nn.Module, x: Tensor) -> Tree:
    traced = torch.jit.trace(module.train(), (x,), check_trace=False).eval()(x)
    # In training mode, and so in this trace, batch normalization moves its statistics: eval mode comes after it.
    module.eval()
    in_eval = torch.jit.trace(module, (x,), check_trace=False)(x)
    return {"eager": module(x), "traced_in_eval": in_eval, "traced": traced, "again": module(x)}


def _script(function: Callable, good: tuple, bad: tuple) -> Tree:
    scripted = torch.jit.script(function)
    found: dict[str, Any] = {"good": [function(*good), scripted(*good)], "tensors": all(map(torch.is_tensor, bad))}
    return {**found, "raised": not torch.is_tensor(_result(scripted, *bad))}


def _result(function: Callable, *args: Any) -> Any:
    """What it returns, or the first line of what it raises."""
    try:
        return function(*args)
    except (RuntimeError, AssertionError, ValueError, torch.jit.Error) as error:
        return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


TRACE_OR_SCRIPT = Exercise(
    id="11-trace-or-script",
    title="What tracing loses and export keeps",
    points=0.4,
    optional=True,
    minutes=30,
    difficulty=2,
    answers=(Answer("branch_lost"), Answer("mode_lost"), Answer("fails_late"), Answer("export_gate")),
    public=(Exported(), Exported(width=6, sizes=(4, 2, 9))),
    inputs=exported_inputs,
    drive=drive_trace_or_script,
    run=Run(wall_s=30.0),
)
