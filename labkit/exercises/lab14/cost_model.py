"""Lab 14: how long each all-reduce takes in the α–β model, and which one to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from labkit.spec import Answer, Case, Exercise

ALGORITHMS = ("naive", "tree", "butterfly", "ring")


@dataclass(frozen=True)
class Links(Case):
    """n ranks add up tensors of n_bytes, which n divides; a message of k bytes takes alpha_s + k beta_s seconds."""

    n: int
    n_bytes: int
    alpha_s: float
    beta_s: float


def no_inputs(case: Links, gen: torch.Generator) -> dict[str, Any]:
    """The case says it all."""
    return {}


def drive(ans, case: Links, tree: dict, stage) -> dict[str, Any]:
    """The seconds of each algorithm, and the fastest one's name; a single rank has nothing to choose."""
    numbers = (case.n, case.n_bytes, case.alpha_s, case.beta_s)
    times = {name: ans.all_reduce_time(name, *numbers) for name in ALGORITHMS}
    name = ans.fastest(*numbers) if case.n > 1 else None
    # NumPy's own kind of text is a name as well.
    return {"times_s": times, "fastest": str(name) if isinstance(name, str) else name}


COST_MODEL = Exercise(
    id="14-cost-model",
    title="Which all-reduce?",
    points=3,
    minutes=15,
    difficulty=2,
    answers=(Answer("all_reduce_time"), Answer("fastest")),
    public=(
        Links(8, 80_000_000, 10e-6, 0.04e-9),
        Links(8, 8_000, 10e-6, 0.04e-9),
        Links(5, 1_030_000, 10e-6, 0.04e-9),
        Links(12, 60_000, 10e-6, 0.04e-9),
        Links(3, 3_000_000, 50e-6, 1e-9),
        Links(2, 1_000_000, 10e-6, 0.04e-9),
        Links(1, 1_000_000, 10e-6, 0.04e-9),
    ),
    inputs=no_inputs,
    drive=drive,
)
