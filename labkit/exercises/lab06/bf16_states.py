"""Lab 06: AdamW with weights and moments in bfloat16 and nothing else, on many copies of the same few weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.exercises.lab06.adamw import LIBRARYS_OWN
from labkit.exercises.lab06.playing import N_METERED, none_explained, warm_up
from labkit.spec import Answer, Case, Exercise, Run, Tree

N_FIRST = 3
"""Steps that are taken again with the same seed, and with another."""


@dataclass(frozen=True)
class Bf16Steps(Case):
    """n_steps on n_copies of n_weights: all copies get the same gradients, a tenth as large after a third of the steps.

    Settings: of AdamW. The copies differ by chance alone. n_tensors: among which the copies are dealt.
    idle: before them there is a parameter that never has a gradient, and
    the case asks for nothing but that it stays and that they move.
    """

    n_steps: int = 300
    n_weights: int = 8
    n_copies: int = 1024
    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    n_tensors: int = 1
    idle: bool = False

    def settings(self) -> dict[str, object]:
        betas = (self.beta1, self.beta2)
        return {"lr": self.lr, "betas": betas, "eps": self.eps, "weight_decay": self.weight_decay}


def bf16_inputs(case: Bf16Steps, gen: torch.Generator) -> dict[str, object]:
    """weights: (n_weights,) bfloat16 of size 0.5 to 0.9. grads: (n_steps, n_weights) bfloat16. seeds: two."""
    sign = torch.where(torch.rand(case.n_weights, generator=gen) < 0.5, -1.0, 1.0)
    weights = sign * (0.5 + 0.4 * torch.rand(case.n_weights, generator=gen))
    direction = torch.randn(case.n_weights, generator=gen).sign()
    grads = direction * (0.5 + torch.rand(case.n_steps, case.n_weights, generator=gen))
    grads[case.n_steps // 3 :] /= 10
    seeds = (1 + torch.randperm(10_000, generator=gen)[:2]).tolist()
    return {"weights": weights.bfloat16(), "grads": grads.bfloat16(), "seeds": seeds}


def drive_bf16(ans, case: Bf16Steps, tree: dict, stage) -> dict[str, Tree]:
    """weights and exp_avg_sq at the end, (n_copies, n_weights); mean_of_exp_avg: over the copies, (n_weights,) float64.

    again, other: whether N_FIRST steps with the first seed, and with the second, end in the same weights as they did;
    True and False in a shorter case. idle: whether a parameter without a gradient is as it was.
    """
    unused = [torch.nn.Parameter(tree["weights"].clone().to(stage.device))] if case.idle else []

    def start(seed: int) -> tuple[list[torch.nn.Parameter], object]:
        pieces = tree["weights"].repeat(case.n_copies, 1).to(stage.device).chunk(case.n_tensors)
        weights = [torch.nn.Parameter(piece.clone()) for piece in pieces]
        generator = torch.Generator(stage.device).manual_seed(seed)
        return weights, ans.BF16AdamW(unused + weights, generator, **case.settings())

    def hand_out(weights: list[torch.nn.Parameter], grad: Tensor) -> None:
        for weight in weights:
            if weight.dtype == torch.bfloat16:  # else the judge says so
                weight.grad = grad.repeat(len(weight), 1).to(stage.device)

    warm_up(
        lambda groups: ans.BF16AdamW(groups, torch.Generator(stage.device).manual_seed(0)), torch.bfloat16, stage.device
    )
    with stage.meter("memory"):
        weights, optimizer = start(tree["seeds"][0])
        for grad in tree["grads"][:N_METERED]:
            hand_out(weights, grad)
            with none_explained(), stage.meter("saved"):
                optimizer.step()
    first = None
    for index, grad in enumerate(tree["grads"][N_METERED:], start=N_METERED + 1):
        hand_out(weights, grad)
        optimizer.step()
        if index == N_FIRST:
            first = torch.cat(weights).detach().clone()
    states = [getattr(optimizer, "state", {}).get(weight, {}) for weight in weights]
    means, squares = ([state.get(name) for state in states] for name in ("exp_avg", "exp_avg_sq"))
    mean = None
    if all(isinstance(one, Tensor) and one.shape == weight.shape for one, weight in zip(means, weights)):
        mean = sum(one.float().sum(0, dtype=torch.float64) for one in means) / case.n_copies
    # What is sent back is put together beside nothing else, or it would take more memory than the steps.
    del optimizer, states, means
    for weight in weights:
        weight.grad = None
    out = {
        "weights": torch.cat(weights).detach(),
        "exp_avg_sq": torch.cat(squares) if all(isinstance(one, Tensor) for one in squares) else None,
        "mean_of_exp_avg": mean,
        "idle": all(torch.equal(one.detach().cpu(), tree["weights"]) for one in unused),
        "again": True,
        "other": False,
    }
    if first is not None:
        for name, seed in zip(("again", "other"), tree["seeds"]):
            weights, optimizer = start(seed)
            for grad in tree["grads"][:N_FIRST]:
                hand_out(weights, grad)
                optimizer.step()
            out[name] = torch.equal(torch.cat(weights), first)
    return out


BF16_STATES = Exercise(
    id="06-bf16-states",
    title="Weights and moments in bfloat16",
    points=3,
    minutes=20,
    difficulty=2,
    answers=(Answer("BF16AdamW"),),
    public=(
        Bf16Steps(),
        Bf16Steps(weight_decay=0.5),
        Bf16Steps(n_steps=12, n_weights=64, lr=1e-2, beta1=0.8, eps=0.01),
        Bf16Steps(n_steps=2, n_weights=256, n_copies=4, weight_decay=0.5, idle=True),
    ),
    inputs=bf16_inputs,
    drive=drive_bf16,
    run=Run(wall_s=20.0),
    meters=("memory", "saved"),
    forbids=LIBRARYS_OWN,
)
