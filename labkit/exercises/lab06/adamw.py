"""Lab 06: AdamW with groups, beside torch's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from labkit.exercises.lab06.playing import Stepping, play, stepping_inputs
from labkit.spec import Answer, Case, Exercise, Tree

LIBRARYS_OWN = (
    "torch.optim.AdamW",
    "torch.optim.Adam",
    "torch.optim.NAdam",
    "torch.optim.RAdam",
    "torch.optim.adamw.adamw",
    "torch.optim.adam.adam",
    "torch.optim.adam._single_tensor_adam",
    "torch.optim.adam._multi_tensor_adam",
    "torch.optim.adam._fused_adam",
    "torch._fused_adamw_",
    "torch._fused_adam_",
)


@dataclass(frozen=True)
class AdamSteps(Stepping):
    """Steps of AdamW with these settings."""

    lr: float = 0.02
    beta1: float = 0.9
    beta2: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.1

    def settings(self) -> dict[str, object]:
        betas = (self.beta1, self.beta2)
        return {"lr": self.lr, "betas": betas, "eps": self.eps, "weight_decay": self.weight_decay}

    def group_settings(self) -> tuple[dict[str, float], ...]:
        return ({}, {"lr": self.lr / 2, "weight_decay": 0.0})[: self.n_groups]


@dataclass(frozen=True)
class Grouping(Case):
    """A language model of n_layers whose parameters are to be grouped.

    tied: its head is its embedding. places: it has a second embedding, not among the model's own children.
    """

    n_layers: int = 2
    tied: bool = True
    places: bool = False
    weight_decay: float = 0.1


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width, bias=False)


class LanguageModel(nn.Module):
    """Has parameters of every kind; nobody runs it. stacked: also a stack of matrices, as of experts."""

    def __init__(self, case: Grouping, width: int = 4, stacked: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(6, width)
        if case.places:
            self.front = nn.ModuleDict({"places": nn.Embedding(5, width)})
        self.blocks = nn.ModuleList(Block(width) for _ in range(case.n_layers))
        if stacked:
            self.experts = nn.Parameter(torch.ones(2, width, width))
        self.scale = nn.Parameter(torch.ones(()))
        self.head = nn.Linear(width, 6, bias=False)
        if case.tied:
            self.head.weight = self.embedding.weight


def adamw_inputs(case: AdamSteps | Grouping, gen: torch.Generator) -> dict[str, Tree]:
    return stepping_inputs(case, gen) if isinstance(case, AdamSteps) else {}


def drive_adamw(ans, case: AdamSteps | Grouping, tree: dict, stage) -> dict[str, Tree]:
    """The weights after each step; or the decay of each parameter, as grouped."""
    if isinstance(case, AdamSteps):
        return play(lambda params: ans.AdamW(params, **case.settings()), case, tree, stage)
    model = LanguageModel(case, stacked=True)
    with stage.meter("memory"), stage.meter("saved"):
        groups = ans.decay_groups(model, case.weight_decay)
    return decay_of_each(model, groups)


def decay_of_each(model: nn.Module, groups: object) -> dict[str, Tree]:
    """ "decay" -> by name the weight decay of its group, or in words that it is in none or in several."""
    if isinstance(groups, (str, Mapping)) or not isinstance(groups, Iterable):
        return {"decay": f"a {type(groups).__name__}, where a list of groups is expected"}
    groups = list(groups)
    if not all(isinstance(group, Mapping) and {"params", "weight_decay"} <= group.keys() for group in groups):
        return {"decay": 'a group that is no dict with "params" and "weight_decay"'}
    found: dict[int, list[float]] = {}
    for group in groups:
        for parameter in group["params"]:
            found.setdefault(id(parameter), []).append(float(group["weight_decay"]))
    counts = {0: "in no group", 1: None}
    return {
        "decay": {
            name: counts.get(len(places), f"{len(places)} times in the groups") or places[0]
            for name, parameter in model.named_parameters()
            for places in [found.get(id(parameter), [])]
        }
    }


ADAMW = Exercise(
    id="06-adamw",
    title="AdamW, with parameter groups",
    points=4,
    minutes=25,
    difficulty=2,
    answers=(Answer("decay_groups"), Answer("AdamW")),
    public=(
        Grouping(tied=False),
        Grouping(),
        AdamSteps(n_steps=3, weight_decay=0.0),
        AdamSteps(weight_decay=0.3),
        AdamSteps(n_steps=6, eps=0.1, grad_scale=0.1, beta1=0.8),
        AdamSteps(n_groups=2, weight_decay=0.5),
        AdamSteps(rare=True),
        AdamSteps(n_steps=8, resumed_after=3),
        AdamSteps(n_steps=2, n_tokens=256, width=64),
    ),
    inputs=adamw_inputs,
    drive=drive_adamw,
    meters=("memory", "saved"),
    forbids=LIBRARYS_OWN,
)
