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
        self.mistake, self.count = mistake, 0

    def load_state_dict(self, saved: dict) -> None:
        if self.mistake != "state lost":
            super().load_state_dict(saved)

    @torch.no_grad()
    def step(self) -> None:
        self.count += 1
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1  # saved with the group
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is None and self.mistake == "zeros in place of None":
                    grad = torch.zeros_like(parameter)
                if grad is None and self.mistake == "stops at None":
                    return
                if grad is not None:
                    self.update(parameter, grad, self.param_groups[0] if self.mistake == "first group" else group)

    def update(self, weight: Tensor, grad: Tensor, group: dict) -> None:
        is_, state = self.mistake.__eq__, self.state[weight]
        counts = {"one count for all": self.count, "one count in the group": group["count"]}
        state["step"] = step = counts.get(self.mistake, state.get("step", 0) + 1)
        counted = {"steps from zero": max(1, step - 1), "steps from two": step + 1}.get(self.mistake, step)
        decay = -group["beta2_decay"] if is_("decay without its sign") else group["beta2_decay"]
        new = 0.001 if is_("fixed beta") else counted**decay
        eps1, eps2 = reversed(group["eps"]) if is_("eps swapped") else group["eps"]
        if is_("eps of its own"):
            eps1, eps2 = 2**-23, 1e-3
        square = (grad.abs() if is_("magnitude for the square") else grad * grad) + eps1 * is_("eps1 added to squares")
        estimate = self.estimate(state, square, 1 - new if is_("new and old swapped") else new, eps1)
        least = eps1 if is_("eps1 not squared") else eps1**2
        if is_("eps1 added to the estimate"):
            estimate = estimate + least
        bounded = estimate if is_("no bound on the estimate") else estimate.clamp(min=least)
        if is_("bounded estimate kept") and "full" in state:
            state["full"] = bounded
        root = {
            "no root": bounded,
            "root multiplied": 1 / bounded.sqrt(),
            "eps1 added to the root": estimate.sqrt() + eps1,
            "eps1 added below the root": (estimate + eps1).sqrt(),
        }.get(self.mistake, bounded.sqrt())
        if is_("root kept") and "full" in state:
            state["full"] = root
        update = grad / root
        sizes = {
            "norm for rms": torch.linalg.norm,
            "deviation in clipping": lambda u: u.std(unbiased=False),
            "unbiased deviation in clipping": torch.std,
            "mean magnitude in clipping": lambda u: u.abs().mean(),
            "largest in clipping": lambda u: u.abs().max(),
        }
        size = sizes[self.mistake](update).item() if self.mistake in sizes else rms(update)
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
            "clipping multiplies": 1 / max(1.0, over),
        }.get(self.mistake, max(1.0, over))
        rate = {
            "no decay of lr": group["lr"],
            "lr times decay": group["lr"] * step**-0.5,
            "most of both rates": max(group["lr"], step**-0.5),
            "one over step": min(group["lr"], 1 / step),
            "rate by the decay": min(group["lr"], step ** group["beta2_decay"]),
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
            "deviation for the scale": max(eps2, weight.std(unbiased=False).item()),
            "unbiased deviation for the scale": max(eps2, weight.std().item()),
            "scale of the gradient": max(eps2, rms(grad)),
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
        if is_("scale of each matrix"):
            scale = rms_of_matrices(weight).clamp(min=eps2)
        if is_("each matrix clipped"):
            clip = (rms_of_matrices(update) / d).clamp(min=1)
        if is_("each element clipped"):
            clip = (update.abs() / d).clamp(min=1)
        weight.sub_((-rate if is_("uphill") else rate) * scale * update / clip)

    def estimate(self, state: dict, square: Tensor, new: float, eps1: float) -> Tensor:
        is_ = self.mistake.__eq__

        def running(name: str, value: Tensor) -> Tensor:
            mean = torch.lerp(state.get(name, torch.zeros_like(value)), value, new)
            if not is_("means not kept") and not (is_("factors not kept") and name != "full"):
                state[name] = mean
            return mean

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
        without |= {
            "sums of columns": lambda: row * col * square.shape[-2] / row.mean(-2, True).clamp(min=eps1),
            "sums of rows": lambda: (
                row * square.shape[-1] * col / (row.mean(-2, True) * square.shape[-1]).clamp(min=eps1)
            ),
            "divided by the sum": lambda: row * col / row.sum(-2, True).clamp(min=eps1),
            "eps1 added to the mean": lambda: row * col / (row.mean(-2, True) + eps1),
            "rows bounded": lambda: row.clamp(min=eps1) * col / row.clamp(min=eps1).mean(-2, True),
        }
        if self.mistake in without:
            return without[self.mistake]()
        mean = row.mean() if is_("one mean for all") else row.mean(axes[0], True)
        if is_("divided row kept"):
            state["row"] = row = row / mean.clamp(min=eps1)
            return row * col
        return row * col / mean.clamp(min=eps1)


def rms(values: Tensor) -> float:
    return values.norm().item() / values.numel() ** 0.5


def rms_of_matrices(values: Tensor) -> Tensor:
    """One for each matrix of a stack; of a vector, its own."""
    return values.square().mean((-2, -1) if values.dim() > 1 else -1, True).sqrt()


@once
def history(run: CaseRun[FactoredSteps], mistake: str) -> dict:
    return play(lambda groups: Mistaken(groups, mistake, **run.case.settings()), run.case, run.tree)


def moved_as(*mistakes: str) -> Callable[[CaseRun], bool]:
    """A diagnosis: the weights went where one of these mistakes takes them, which is not where they should be."""
    return lambda run: any(
        near(run.got, history(run, mistake)) and not near(history(run, mistake), run.expected) for mistake in mistakes
    )
