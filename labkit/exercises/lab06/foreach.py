"""Lab 06: AdamW once more, in a few operations on lists of tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab06.adamw import LIBRARYS_OWN, AdamSteps
from labkit.exercises.lab06.playing import play, stepping_inputs
from labkit.spec import Answer, Exercise, Tree

IN_DOUBLE = ("head", "bias")
"""The parameters that are float64 where a case mixes dtypes: values of it are as exact as float32's."""


@dataclass(frozen=True)
class ForeachSteps(AdamSteps):
    """Steps of AdamW. mixed: IN_DOUBLE are float64, the others float32."""

    n_steps: int = 4
    mixed: bool = False


def foreach_inputs(case: ForeachSteps, gen: torch.Generator) -> dict[str, Tree]:
    tree = stepping_inputs(case, gen)
    if case.mixed:
        for by_name in (tree["weights"], *tree["grads"]):
            by_name.update({name: by_name[name].double() for name in IN_DOUBLE if name in by_name})
    return tree


def drive_foreach(ans, case: ForeachSteps, tree: dict, stage) -> dict[str, Tree]:
    """The weights after each step; the operations of one of them are counted."""
    return play(lambda params: ans.ForeachAdamW(params, **case.settings()), case, tree, stage, counted=True)


FOREACH = Exercise(
    id="06-foreach",
    title="AdamW on lists of tensors",
    points=0.7,
    optional=True,
    minutes=20,
    difficulty=2,
    answers=(Answer("ForeachAdamW"),),
    public=(
        ForeachSteps(weight_decay=0.3),
        ForeachSteps(n_embeddings=37),
        ForeachSteps(n_embeddings=37, mixed=True),
        ForeachSteps(n_groups=2, mixed=True, weight_decay=0.5),
        ForeachSteps(n_steps=8, rare=True),
        ForeachSteps(n_steps=5, rare=True, mixed=True),
        ForeachSteps(n_steps=8, resumed_after=3, eps=0.1, grad_scale=0.1),
        ForeachSteps(n_steps=3, n_tokens=1024, width=256, n_embeddings=4),
    ),
    inputs=foreach_inputs,
    drive=drive_foreach,
    meters=("memory", "saved", "ops"),
    forbids=LIBRARYS_OWN,
)
