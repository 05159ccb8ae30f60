"""Lab 01: the bytes of weights, gradients and optimizer states, by recipe and optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise

RECIPES = ("fp32", "amp", "fp16_master", "huggingface", "bf16")
OPTIMIZERS = ("sgd", "momentum", "adamw", "adam8bit", "adafactor", "adafactor_momentum")
PARTS = ("weights", "master", "gradients", "optimizer")


@dataclass(frozen=True)
class States(Case):
    """A recipe of precisions, an optimizer, and the shapes of the parameters."""

    recipe: str
    optimizer: str
    shapes: tuple[tuple[int, ...], ...]


def drive_states(ans, case: States, tree: dict, stage) -> dict[str, object]:
    """bytes: the student's four parts. gb, gib: what is made of an amount, which is drawn."""
    parts = ans.model_state_bytes([tuple(shape) for shape in case.shapes], case.recipe, case.optimizer)
    if isinstance(parts, Mapping):
        parts = {
            name: value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
            for name, value in parts.items()
        }
    both = ans.gb_and_gib(tree["n_bytes"])
    if not isinstance(both, tuple | list) or len(both) != 2:
        return {"bytes": parts, "gb": both, "gib": None}
    return {"bytes": parts, "gb": both[0], "gib": both[1]}


SHAPES = ((300, 48), (48, 128), (128, 48), (48,), (128,))
CONVOLUTION = ((32, 16, 3, 3), (32,), (10, 32))

MODEL_STATE_BYTES = Exercise(
    id="01-model-state-bytes",
    title="Weights, gradients, optimizer states",
    points=3,
    minutes=15,
    difficulty=1,
    answers=(Answer("model_state_bytes"), Answer("gb_and_gib")),
    public=(
        *(States(recipe, "adamw", SHAPES) for recipe in RECIPES),
        *(States("fp16_master", optimizer, SHAPES) for optimizer in OPTIMIZERS if optimizer != "adamw"),
        States("bf16", "momentum", CONVOLUTION),
        States("fp32", "adafactor", CONVOLUTION),
        States("bf16", "adafactor", SHAPES),
        States("bf16", "adam8bit", SHAPES),
    ),
    inputs=lambda case, gen: {"n_bytes": int(torch.randint(10**9, 10**13, (), generator=gen))},
    drive=drive_states,
    forbids=("torch.optim.SGD", "torch.optim.Adam", "torch.optim.AdamW", "torch.optim.Adafactor"),
)
