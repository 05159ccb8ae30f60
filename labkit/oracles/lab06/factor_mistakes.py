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
        counted = {"steps from zero": max(1, step - 1), "steps from two": step + 1}.get(self.mistake, step)
        decay = -group["beta2_decay"] if is_("decay without its sign") else group["beta2_decay"]
        new = 0.001 if is_("fixed beta") else counted**decay
        eps1, eps2 = reversed(group["eps"]) if is_("eps swapped") else group["eps"]
        square = (grad.abs() if is_("magnitude for the square") else grad * grad) + eps1 * is_("eps1 added to squares")
        estimate = self.estimate(state, square, 1 - new if is_("new and old swapped") else new, eps1)
        least = eps1 if is_("eps1 not squared") else eps1**2
        if is_("eps1 added to the estimate"):
            estimate = estimate + least
        bounded = estimate if is_("no bound on the estimate") else estimate.clamp(min=least)
        root = bounded if is_("no root") else bounded.sqrt()
        update = grad / root
        size = update.norm().item() if is_("norm for rms") else rms(update)
        d = group["d"]
        over = size / (1.0 if is_("d left out") else d)
        clip = {
            "no clipping": 1.0,
            "always normalized": size,
            "least for most in clipping": min(1.0, over),
            "maximum before d": max(1.0, size) / d,
            "maximum with d": max(d, size),
            "times d": max(1.0, size * d),
            "mean square in clipping": max(1.0, size**2 / d),
            "clipped by the gradient": max(1.0, rms(grad) / d),
        }.get(self.mistake, max(1.0, over))
        rate = {
            "no decay of lr": group["lr"],
            "lr times decay": group["lr"] * step**-0.5,
            "most of both rates": max(group["lr"], step**-0.5),
            "one over step": min(group["lr"], 1 / step),
            "no lr": step**-0.5,
        }.get(self.mistake, min(group["lr"], step**-0.5))
        scale = {
            "no scale of the weight": 1.0,
            "no least scale": rms(weight),
            "eps2 added": eps2 + rms(weight),
            "mean square for the scale": max(eps2, rms(weight) ** 2),
            "mean magnitude for the scale": max(eps2, weight.abs().mean().item()),
            "least for most in the scale": min(eps2, rms(weight)),
            "scale of the update": max(eps2, rms(update)),
            "scale of the clipped update": max(eps2, rms(update) / clip),
            "norm for the scale": max(eps2, weight.norm().item()),
            "both norms": max(eps2, weight.norm().item()),
            "scale after the step": max(eps2, rms(weight - rate * update / clip)),
            "scale after the whole step": max(eps2, rms(weight - rate * max(eps2, rms(weight)) * update / clip)),
        }.get(self.mistake, max(eps2, rms(weight)))
        if is_("scale of the first step"):
            scale = state.setdefault("scale", scale)
        if is_("both norms"):
            clip = max(1.0, update.norm().item() / group["d"])
        if is_("step clipped"):
            clip = max(1.0, rms(rate * scale * update) / group["d"])
        if is_("update clipped after the rate"):
            clip = max(1.0, rms(rate * update) / group["d"])
        if is_("scale of each row"):
            scale = weight.square().mean(-1, True).sqrt().clamp(min=eps2)
        weight.sub_(rate * scale * update / clip)

    def estimate(self, state: dict, square: Tensor, new: float, eps1: float) -> Tensor:
        is_ = self.mistake.__eq__

        def running(name: str, value: Tensor) -> Tensor:
            state[name] = torch.lerp(state.get(name, torch.zeros_like(value)), value, new)
            return state[name]

        if square.dim() < 2 and is_("one number for a vector"):
            return running("full", square.mean())
        if square.dim() < 2 or is_("full") or (is_("matrices alone") and square.dim() > 2):
            return running("full", square)
        axes = (0, 1) if is_("first two axes") else (-2, -1)
        row, col = running("row", square.mean(axes[1], True)), running("col", square.mean(axes[0], True))
        if is_("sums for means"):
            row, col = row * square.shape[-1], col * square.shape[-2]
            return row * col / row.mean(-2, True).clamp(min=eps1)
        without = {
            "no division": lambda: row * col,
            "columns over rows": lambda: col / row,
            "rows over columns": lambda: row / col,
            "root of the product": lambda: (row * col).sqrt(),
            "row alone": lambda: row * col / col.clamp(min=eps1),
            "column alone": lambda: row * col / row.clamp(min=eps1),
            "mean of the row not bounded": lambda: row * col / row.mean(-2, True),
        }
        if self.mistake in without:
            return without[self.mistake]()
        mean = row.mean() if is_("one mean for all") else row.mean(axes[0], True)
        return row * col / mean.clamp(min=eps1)


def rms(values: Tensor) -> float:
    return values.norm().item() / values.numel() ** 0.5


@once
def history(run: CaseRun[FactoredSteps], mistake: str) -> dict:
    return play(lambda groups: Mistaken(groups, mistake, **run.case.settings()), run.case, run.tree)


def moved_as(*mistakes: str) -> Callable[[CaseRun], bool]:
    """A diagnosis: the weights went where one of these mistakes takes them, which is not where they should be."""
    return lambda run: any(
        near(run.got, history(run, mistake)) and not near(history(run, mistake), run.expected) for mistake in mistakes
    )
