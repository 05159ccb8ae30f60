"""Lab 20: peak bytes, bytes moved and tokens of a run, before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from labkit.exercises.lab20.config import Config
from labkit.spec import Answer, Exercise, Run


def no_inputs(case: Config, gen: torch.Generator) -> dict[str, Any]:
    """The case says it all."""
    return {}


def as_number(value: Any) -> Any:
    """A number as a float, whatever kind of number it is; anything else as it is."""
    return float(value) if hasattr(value, "__float__") else value


def drive(ans, case: Config, tree: dict, stage) -> Any:
    """What is predicted. Operations on tensors are counted: a prediction needs none."""
    with stage.meter("ops"):
        found = ans.predict(case)
    if not isinstance(found, Mapping):
        return found
    return {str(name): as_number(value) for name, value in found.items()}


PREDICT = Exercise(
    id="20-predict",
    title="What a run will cost",
    points=5,
    minutes=35,
    difficulty=3,
    answers=(Answer("predict"),),
    public=(
        Config(1024, 8, 8_000, 512, 4, 1, 100),
        Config(2048, 16, 16_000, 1024, 2, 4, 50, bytes_per_number=2),
        Config(1024, 8, 32_000, 1024, 4, 1, 80, 2, recompute=True),
        Config(1024, 8, 512, 2048, 8, 3, 30, 2, recompute=True, n_cards=4),
        Config(2048, 16, 8_000, 512, 1, 2, 60, 2, states_on_host=True),
        Config(1536, 12, 24_000, 512, 1, 3, 40, 4, True, True, n_cards=4, n_layers=6),
        Config(1024, 8, 4_096, 384, 2, 2, 40, 4, True, True, n_layers=2),
    ),
    inputs=no_inputs,
    drive=drive,
    run=Run(wall_s=30.0),
    meters=("ops",),
)
