"""Lab 06: Adafactor's usual mistakes, played on the same gradients. What is right comes from `torch.optim`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labkit.exercises.lab06.adafactor import FactoredSteps
from labkit.exercises.lab06.playing import play
from labkit.oracles.hints import once
from labkit.oracles.lab06.histories import near
from labkit.spec import CaseRun


class Mistaken(torch.optim.Optimizer):
    """Adafactor with one mistake."""

    def __init__(self, groups: list[dict], mistake: str, **settings: object) -> None:
        super().__init__(groups, settings)
        self.mistake = mistake

    def load_state_dict(self, saved: dict) -> None:
        if self.mistake != "state lost":
            super().load_state_dict(saved)

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self.update(parameter, parameter.grad, group)

    def update(self, weight: Tensor, grad: Tensor, group: dict) -> None:
        is_, state = self.mistake.__eq__, self.state[weight]
        state["step"] = step = state.get("step", 0) + 1
        new = 0.001 if is_("fixed beta") else step ** group["beta2_decay"]
        eps1, eps2 = group["eps"]
        estimate = self.estimate(state, grad * grad, new, eps1)
        root = estimate if is_("no root") else estimate.clamp(min=eps1**2).sqrt()
        update = grad / root
        size = update.norm().item() if is_("norm for rms") else rms(update)
        clip = 1.0 if is_("no clipping") else size if is_("always normalized") else max(1.0, size / group["d"])
        rate = group["lr"] if is_("no decay of lr") else min(group["lr"], step**-0.5)
        rate = group["lr"] * step**-0.5 if is_("lr times decay") else rate
        scale = 1.0 if is_("no scale of the weight") else max(eps2, rms(weight))
        weight.sub_(rate * scale * update / clip)

    def estimate(self, state: dict, square: Tensor, new: float, eps1: float) -> Tensor:
        is_ = self.mistake.__eq__

        def running(name: str, value: Tensor) -> Tensor:
            state[name] = torch.lerp(state.get(name, torch.zeros_like(value)), value, new)
            return state[name]

        if square.dim() < 2 or is_("full"):
            return running("full", square)
        axes = (0, 1) if is_("first two axes") else (-2, -1)
        row, col = running("row", square.mean(axes[1], True)), running("col", square.mean(axes[0], True))
        if is_("no division"):
            return row * col
        mean = row.mean() if is_("one mean for all") else row.mean(axes[0], True)
        return row * col / mean.clamp(min=eps1)


def rms(values: Tensor) -> float:
    return values.norm().item() / values.numel() ** 0.5


@once
def history(run: CaseRun[FactoredSteps], mistake: str) -> dict:
    return play(lambda groups: Mistaken(groups, mistake, **run.case.settings()), run.case, run.tree)


def moved_as(mistake: str) -> Callable[[CaseRun], bool]:
    """A diagnosis: the weights went where this mistake takes them, which is not where they should be."""
    return lambda run: near(run.got, history(run, mistake)) and not near(history(run, mistake), run.expected)
