"""Lab 06: Adam's usual mistakes, played on the same gradients.

Each is the whole history that an answer with this one mistake leaves. What is right comes from `torch.optim`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab06.adamw import AdamSteps
from labkit.exercises.lab06.playing import play
from labkit.oracles.hints import once
from labkit.oracles.lab06.histories import near
from labkit.spec import CaseRun

MISTAKES = (
    "adam",
    "no correction",
    "no first correction",
    "no second correction",
    "correction of the next step",
    "correction of the step before",
    "corrections swapped",
    "beta1 in both corrections",
    "correction outside the root",
    "eps inside the root",
    "eps before the correction",
    "no root",
    "no eps",
    "decay after the update",
    "decay not times lr",
    "no decay",
    "one count for all parameters",
    "one count in the group",
    "settings of the first group",
    "state lost",
    "count lost",
    "betas swapped",
    "gradient in place of the mean",
    "corrected mean kept",
    "corrected square kept",
    "root kept",
    "corrected root kept",
    "denominator kept",
    "earlier groups again",
    "zeros in place of None",
    "counts without a gradient",
    "state made anew",
    "only the decay",
    "factors without powers",
    "new and old swapped",
    "swapped in the mean",
    "swapped in the square",
    "uphill",
    "no learning rate",
    "square not squared",
    "magnitude for the square",
    "stops at None",
    "group stops at None",
    "moments made anew",
    "old mean kept whole",
    "new gradient whole",
    "new square whole",
    "beta1 for the square",
    "square of the mean",
    "both corrected kept",
    "corrections multiplied",
    "eps after the division",
    "mean begins with the gradient",
    *("count times the betas", "count times beta1", "count times beta2"),
    *("powers of what is new", "power of what is new in the mean", "power of what is new in the square"),
)


class Mistaken(torch.optim.Optimizer):
    """AdamW in float32 with one of MISTAKES."""

    def __init__(self, groups: list[dict], mistake: str, **settings: object) -> None:
        super().__init__(groups, settings)
        self.mistake, self.count, self.loaded = mistake, 0, False

    def load_state_dict(self, saved: dict) -> None:
        if self.mistake != "state lost":
            super().load_state_dict(saved)
        self.loaded = True

    @torch.no_grad()
    def step(self) -> None:
        self.count += self.mistake == "one count in the group"
        for n, group in enumerate(self.param_groups):
            settings = self.param_groups[0] if self.mistake == "settings of the first group" else group
            groups = self.param_groups[: n + 1] if self.mistake == "earlier groups again" else [group]
            for parameter in (parameter for one in groups for parameter in one["params"]):
                grad = parameter.grad
                if grad is None and self.mistake == "zeros in place of None":
                    grad = torch.zeros_like(parameter)
                if grad is None and self.mistake == "stops at None":
                    return
                if grad is None and self.mistake == "group stops at None":
                    break
                if grad is not None:
                    self.update(parameter, grad, settings)
                elif self.mistake == "counts without a gradient":
                    self.state[parameter]["step"] = self.state[parameter].get("step", 0) + 1

    def update(self, weight: torch.Tensor, grad: torch.Tensor, group: dict) -> None:
        is_ = self.mistake.__eq__
        state = {} if is_("state made anew") else self.state[weight]
        mean, square = state.get("mean", torch.zeros_like(weight)), state.get("square", torch.zeros_like(weight))
        if is_("moments made anew"):
            mean, square = torch.zeros_like(weight), torch.zeros_like(weight)
        if is_("mean begins with the gradient") and "mean" not in state:
            mean = grad
        step = self.next_step(state)
        lr, decay, eps = group["lr"], group["weight_decay"], group["eps"]
        beta1, beta2 = reversed(group["betas"]) if is_("betas swapped") else group["betas"]
        if is_("adam"):
            grad = grad + decay * weight
        new1 = beta1 if self.mistake in ("new and old swapped", "swapped in the mean") else 1 - beta1
        new2 = beta2 if self.mistake in ("new and old swapped", "swapped in the square") else 1 - beta2
        squared = {"square not squared": grad, "magnitude for the square": grad.abs()}.get(self.mistake, grad * grad)
        new2 = 1 - beta1 if is_("beta1 for the square") else new2
        old1, old2 = 1.0 if is_("old mean kept whole") else 1 - new1, 1 - new2
        mean = old1 * mean + (1.0 if is_("new gradient whole") else new1) * grad
        squared = mean * mean if is_("square of the mean") else squared
        square = old2 * square + (1.0 if is_("new square whole") else new2) * squared
        state.update(mean=mean, square=square, step=step)
        by_step = step + is_("correction of the next step") - is_("correction of the step before")
        one, two = 1 - beta1**by_step, 1 - (beta1 if is_("beta1 in both corrections") else beta2) ** by_step
        if is_("factors without powers"):
            one, two = 1 - beta1, 1 - beta2
        if self.mistake in ("count times the betas", "count times beta1"):
            one = 1 - beta1 * step
        if self.mistake in ("count times the betas", "count times beta2"):
            two = 1 - beta2 * step
        if self.mistake in ("powers of what is new", "power of what is new in the mean"):
            one = (1 - beta1) ** step
        if self.mistake in ("powers of what is new", "power of what is new in the square"):
            two = (1 - beta2) ** step
        if is_("corrections multiplied"):
            one, two = 1 / one, 1 / two
        if is_("corrections swapped"):
            one, two = two, one
        one = 1.0 if is_("no correction") or is_("no first correction") else one
        two = 1.0 if is_("no correction") or is_("no second correction") else two
        moved = grad if is_("gradient in place of the mean") else mean / one
        moved = -moved if is_("uphill") else moved / lr if is_("no learning rate") else moved
        if is_("eps inside the root"):
            below = (square / two + eps).sqrt()
        elif is_("eps before the correction"):
            below = (square.sqrt() + eps) / two**0.5
        elif is_("correction outside the root"):
            below = square.sqrt() / two + eps
        elif is_("no root"):
            below = square / two + eps
        else:
            below = (square / two).sqrt() + eps * (not is_("no eps"))
        kept = {
            "corrected mean kept": {"mean": mean / one},
            "corrected square kept": {"square": square / two},
            "both corrected kept": {"mean": mean / one, "square": square / two},
            "root kept": {"square": square.sqrt()},
            "corrected root kept": {"square": (square / two).sqrt()},
            "denominator kept": {"square": below},
        }
        state.update(kept.get(self.mistake, {}))
        shrunk = 0.0 if is_("adam") or is_("no decay") else decay * (1 if is_("decay not times lr") else lr)
        if is_("only the decay"):
            weight.mul_(1 - shrunk)
        elif is_("decay after the update"):
            weight.sub_(lr * moved / below).mul_(1 - shrunk)
        elif is_("eps after the division"):
            weight.mul_(1 - shrunk).sub_(lr * moved / (square / two).sqrt() + eps)
        else:
            weight.mul_(1 - shrunk).sub_(lr * moved / below)

    def next_step(self, state: dict) -> int:
        if self.mistake == "one count for all parameters":
            self.count += 1
        if self.mistake in ("one count for all parameters", "one count in the group"):
            return self.count
        return 1 + (
            0 if self.mistake == "count lost" and self.loaded and not self.again(state) else state.get("step", 0)
        )

    def again(self, state: dict) -> bool:
        """Whether this state has been stepped since it was loaded."""
        return state.setdefault("touched", None) is self or bool(state.update(touched=self))


@once
def history(run: CaseRun[AdamSteps], mistake: str) -> dict:
    return play(lambda groups: Mistaken(groups, mistake, **run.case.settings()), run.case, run.tree)


@once
def is_right(run: CaseRun[AdamSteps]) -> bool:
    return near(run.got, run.expected)


def moved_as(*mistakes: str) -> Callable[[CaseRun], object]:
    """A diagnosis: the weights went where one of these mistakes takes them, which is not where they should be."""

    def when(run: CaseRun) -> bool:
        # Asked first: where only a budget is exceeded no mistake needs playing, and such cases are large.
        return (
            isinstance(run.case, AdamSteps)
            and not is_right(run)
            and any(
                near(run.got, history(run, mistake)) and not near(history(run, mistake), run.expected)
                for mistake in mistakes
            )
        )

    return when
