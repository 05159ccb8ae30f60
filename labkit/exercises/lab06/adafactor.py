"""Lab 06: Adafactor, whose second moment is a row and a column, beside torch's own."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.exercises.lab06.playing import Stepping, play, shapes_of
from labkit.spec import Answer, Exercise, Tree


@dataclass(frozen=True)
class FactoredSteps(Stepping):
    """Steps of Adafactor with these settings. n_experts: a parameter with three axes, where it is not 0.

    jump: how many times as large the gradients of the last step are.
    """

    lr: float = 0.05
    beta2_decay: float = -0.8
    eps1: float = 1e-7
    eps2: float = 1e-3
    d: float = 1.0
    n_experts: int = 0
    jump: float = 1.0

    def settings(self) -> dict[str, object]:
        return {"lr": self.lr, "beta2_decay": self.beta2_decay, "eps": (self.eps1, self.eps2), "d": self.d}

    def group_settings(self) -> tuple[dict[str, float], ...]:
        return ({}, {"lr": self.lr / 2})[: self.n_groups]


def factored_inputs(case: FactoredSteps, gen: torch.Generator) -> dict[str, Tree]:
    """weights of size 2. grads: each row and each column of a parameter on a scale of its own, and noise."""
    shapes = shapes_of(case)
    if case.n_experts:
        shapes["experts"] = (case.n_experts, 4, 5)
    weights = {name: 2 * torch.randn(shape, generator=gen) for name, shape in shapes.items()}
    scales = {name: scale_of(shape, gen) for name, shape in shapes.items()}
    grads = []
    for step in range(case.n_steps):
        factor = case.grad_scale * (case.jump if step == case.n_steps - 1 else 1.0)
        noise = {name: 0.5 + torch.randn(scale.shape, generator=gen) for name, scale in scales.items()}
        drawn = {name: factor * scale * noise[name] for name, scale in scales.items()}
        grads.append(case.handed_out(step, drawn))
    return {"weights": weights, "grads": grads}


def scale_of(shape: tuple[int, ...], gen: torch.Generator) -> torch.Tensor:
    """A product of one factor from 0.1 to 1 for each place along each axis."""
    scale = torch.ones(shape)
    for axis, size in enumerate(shape):
        along = 10 ** -torch.rand(size, generator=gen)
        scale = scale * along.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return scale


ADAFACTOR = Exercise(
    id="06-adafactor",
    title="A second moment of a row and a column",
    points=4,
    minutes=25,
    difficulty=2,
    answers=(Answer("Adafactor"),),
    public=(
        FactoredSteps(n_steps=1),
        FactoredSteps(n_steps=12, lr=0.5),
        FactoredSteps(n_steps=6, jump=20.0, d=1.2),
        FactoredSteps(n_steps=5, n_experts=3),
        FactoredSteps(n_steps=6, n_groups=2, rare=True, lr=0.1),
        FactoredSteps(n_steps=6, resumed_after=3),
        FactoredSteps(n_steps=4, eps2=4.0),  # more than the rms of the weights
        FactoredSteps(n_steps=4, lr=1e-3, grad_scale=1e-4, eps1=1e-6, d=1e3),
        FactoredSteps(n_steps=2, n_tokens=256, width=64),
    ),
    inputs=factored_inputs,
    drive=lambda ans, case, tree, stage: play(
        lambda params: ans.Adafactor(params, **case.settings()), case, tree, stage
    ),
    meters=("memory", "saved"),
    forbids=(
        "torch.optim.Adafactor",
        "torch.optim._adafactor.adafactor",
        "torch.optim._adafactor._single_tensor_adafactor",
        "torch.optim._adafactor._multi_tensor_adafactor",
    ),
)
