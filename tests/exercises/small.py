"""A small exercise to try the check's machinery on: `double(x)`, and answers to it given as a cell's text."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

import torch

from labkit.check.api import examine
from labkit.check.verdict import Verdict
from labkit.compare import inputs_untouched
from labkit.observe import make_inputs, observe
from labkit.spec import Answer, Case, Exercise, Hint, Observation, Oracle, Run, Tolerance

CELL = "<cell>"


@dataclass(frozen=True)
class Size(Case):
    n_rows: int = 2
    n_cols: int = 3


def _inputs(case: Size, generator: torch.Generator) -> dict:
    return {"x": torch.arange(1.0, case.n_rows * case.n_cols + 1).reshape(case.n_rows, case.n_cols)}


DOUBLE = Exercise(
    id="90-double",
    title="Twice the input",
    points=2,
    minutes=1,
    difficulty=1,
    answers=(Answer("double"),),
    public=(Size(), Size(1, 4)),
    inputs=_inputs,
    drive=lambda ans, case, tree, stage: {"out": ans.double(tree["x"])},
    run=Run(wall_s=5),
)
ORACLE = Oracle(
    id="90-double",
    expect=lambda run: {"out": run.tree["x"] * 2},
    judge=(inputs_untouched,),
    tolerance=Tolerance(atol=1e-6, rtol=1e-5),
    diagnose=(
        Hint(
            lambda run: torch.equal(run.got["out"], run.tree["x"] ** 2),
            "This is the square: `**` is the power, `*` the product.",
        ),
    ),
    show=lambda run, index: f"x[{index[0]}, {index[1]}] = {run.tree['x'][index].item():g}",
)


def cell(source: str) -> dict[str, object]:
    """The names that a notebook cell with this text defines; its lines can be quoted, as in a notebook."""
    linecache.cache[CELL] = (len(source), None, source.splitlines(keepends=True), CELL)
    namespace: dict[str, object] = {"torch": torch}
    exec(compile(source, CELL, "exec"), namespace)
    return namespace


def run(function: Callable | None, **changes: object) -> Observation:
    """One run of this function as DOUBLE's answer, with these fields of DOUBLE changed."""
    exercise = replace(DOUBLE, **changes)
    tree = make_inputs(exercise, Size(), 0)
    return observe(exercise, SimpleNamespace(double=function), Size(), tree)


def examined(source: str, oracle: Oracle = ORACLE, **changes: object) -> Verdict:
    """The verdict on a cell, for DOUBLE with these fields changed."""
    return examine(replace(DOUBLE, **changes), oracle, cell(source), [source])
