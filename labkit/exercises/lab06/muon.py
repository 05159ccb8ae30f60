"""Lab 06: Muon, which makes all singular values of a step about equal: matrices, groups, steps on given gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from labkit.exercises.lab06.adamw import Grouping, LanguageModel
from labkit.exercises.lab06.playing import Stepping, play
from labkit.spec import Answer, Case, Exercise, Tree

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b, c of Keller Jordan's iteration."""
N_ITERATIONS = 5
BLOCKS = 3
"""Queries, keys and values in one matrix."""
SIZES = {"square": (12, 12), "wide": (8, 20), "tall": (20, 8), "qkv": (24, 8)}


def polynomial(sigma: Tensor, n_steps: int = N_ITERATIONS) -> Tensor:
    """What n steps of Newton-Schulz make of singular values."""
    a, b, c = COEFFICIENTS
    for _ in range(n_steps):
        sigma = a * sigma + b * sigma**3 + c * sigma**5
    return sigma


@dataclass(frozen=True)
class Matrix(Case):
    """A matrix to orthogonalize. kind: "random", "built" (singular values from 0.01 to 1 of its norm) or "zeros"."""

    shape: tuple[int, int]
    kind: str = "random"
    scale: float = 1.0


@dataclass(frozen=True)
class MuonSteps(Stepping):
    """Steps of Muon on matrices of SIZES; "qkv" is in a group of its own, with n_blocks = 3.

    adjust: "original" or "match_rms_adamw", as PyTorch names the two rules for the learning rate. n_large: beside them,
    matrices of n_rows and 32 columns.
    """

    RARE: ClassVar[str] = "wide"
    n_steps: int = 4
    n_groups: int = 2
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 0.1
    adjust: str = "original"
    n_large: int = 0
    n_rows: int = 2048

    def settings(self) -> dict[str, object]:
        return {
            "lr": self.lr,
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
            "adjust": self.adjust,
        }

    def group_settings(self) -> tuple[dict[str, float], ...]:
        return ({}, {"n_blocks": BLOCKS})

    def group_of(self, name: str, shape: tuple[int, ...]) -> int:
        return int(name == "qkv")


def muon_inputs(case: Matrix | Grouping | MuonSteps, gen: torch.Generator) -> dict[str, Tree]:
    """g; or weights, and grads that keep a direction from step to step."""
    if isinstance(case, Matrix):
        return {"g": matrix_of(case, gen)}
    if isinstance(case, Grouping):
        return {}
    shapes = SIZES | {f"large {n}": (case.n_rows, 32) for n in range(case.n_large)}
    fixed = {name: torch.randn(shape, generator=gen) for name, shape in shapes.items()}
    drawn = [
        {name: part + torch.randn(part.shape, generator=gen) for name, part in fixed.items()}
        for _ in range(case.n_steps)
    ]
    grads = [case.handed_out(step, each) for step, each in enumerate(drawn)]
    return {"weights": {name: torch.randn(shape, generator=gen) for name, shape in shapes.items()}, "grads": grads}


def matrix_of(case: Matrix, gen: torch.Generator) -> Tensor:
    g = torch.randn(case.shape, generator=gen)
    if case.kind == "zeros":
        return torch.zeros(case.shape)
    if case.kind == "built":
        u, _, vh = torch.linalg.svd(g, full_matrices=False)
        sizes = torch.logspace(-1.8, 0, u.shape[1])
        g = u @ torch.diag(sizes / sizes.norm()) @ vh
    return case.scale * g


def names_of(model: nn.Module, parameters: object) -> list[str]:
    """The names of these parameters in order, each as often as it is there; "unknown" for what the model has not."""
    named = {id(parameter): name for name, parameter in model.named_parameters()}
    return sorted(named.get(id(one), "unknown") for one in parameters)


def drive_muon(ans, case: Matrix | Grouping | MuonSteps, tree: dict, stage) -> dict[str, Tree]:
    """The orthogonalized matrix; the names in both lists; or the weights after each step."""
    if isinstance(case, MuonSteps):
        with stage.meter("ops"):
            return play(lambda params: ans.Muon(params, **case.settings()), case, tree, stage)
    with stage.meter("memory"), stage.meter("saved"), stage.meter("ops"):
        if isinstance(case, Matrix):
            return {"out": ans.orthogonalize(tree["g"].to(stage.device))}
        model = LanguageModel(case)
        matrices, others = ans.split_parameters(model)
    return {"for Muon": names_of(model, matrices), "for AdamW": names_of(model, others)}


MUON = Exercise(
    id="06-muon",
    title="Muon: steps with equal singular values",
    points=1.2,
    optional=True,
    minutes=35,
    difficulty=3,
    answers=(Answer("orthogonalize"), Answer("split_parameters"), Answer("Muon")),
    public=(
        Matrix((8, 24)),
        Matrix((16, 40), "built"),
        Matrix((512, 16), scale=1e-3),
        Matrix((4, 6), "zeros"),
        Grouping(tied=False),
        Grouping(places=True),
        MuonSteps(n_steps=1, weight_decay=0.0),
        MuonSteps(),
        MuonSteps(adjust="match_rms_adamw", lr=0.02),
        MuonSteps(rare=True),
        MuonSteps(n_steps=2, n_large=1),
    ),
    inputs=muon_inputs,
    drive=drive_muon,
    meters=("memory", "saved", "ops"),
    forbids=(
        "torch.optim.Muon",
        "torch.optim._muon.muon",
        "torch.optim._muon._single_tensor_muon",
        "torch.optim._muon._zeropower_via_newtonschulz",
        "torch.linalg.svd",
        "torch.svd",
    ),
)
