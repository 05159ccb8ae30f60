"""Lab 03: loss scalers with one mistake each, played on the same gradients as the student's.

Such a mistake shows differently in every case: an undivided gradient moves the weights in one, and overflows in the
next. What it makes of a case is therefore computed and compared as a whole. Nothing is told to a student here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from labkit.exercises.lab03.loss_scaler import RARE, SCALE, STATE, WEIGHTS, ScaledTraining, play
from labkit.spec import CaseRun


class ByTheTable:
    """The scaler of the notebook's table, in parts that a mistake replaces."""

    late = 0
    """By how many clean steps growth comes too late."""

    def __init__(self, case: ScaledTraining) -> None:
        self.case, self.now, self.n_clean = case, case.init_scale, 0
        self.bad: bool | None = None

    def get_scale(self) -> float:
        return self.now

    def scale(self, loss: Tensor) -> Tensor:
        return loss * self.now

    def divide(self, grad: Tensor) -> None:
        grad.div_(self.now)

    def looked_at(self, grads: Sequence[Tensor]) -> Sequence[Tensor]:
        return grads

    def is_bad(self, grad: Tensor) -> bool:
        return not grad.isfinite().all()

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        held = [p for group in optimizer.param_groups for p in group["params"]]
        grads = [p.grad for p in held if p.grad is not None]
        for grad in grads:
            self.divide(grad)
        self.bad = any(self.is_bad(grad) for grad in self.looked_at(grads))

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.bad is None:
            self.unscale_(optimizer)
        if not self.bad:
            optimizer.step()

    def update(self) -> None:
        if self.bad:
            self.now *= self.case.backoff_factor
            self.n_clean = 0
        else:
            self.n_clean += 1
            if self.n_clean == self.case.growth_interval + self.late:
                self.grow()
        self.forget()

    def grow(self) -> None:
        self.now *= self.case.growth_factor
        self.n_clean = 0

    def forget(self) -> None:
        self.bad = None


class NeverDivides(ByTheTable):
    def divide(self, grad: Tensor) -> None:
        """Nothing, or a copy."""


class DividesOnlyWhenAsked(ByTheTable):
    """Takes gradients that nobody has unscaled for finite ones that somebody has."""

    def __init__(self, case: ScaledTraining) -> None:
        super().__init__(case)
        self.bad = False

    def forget(self) -> None:
        self.bad = False


class Multiplies(ByTheTable):
    def divide(self, grad: Tensor) -> None:
        grad.mul_(self.now)


class NeedsUnscale(ByTheTable):
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.bad is False:
            optimizer.step()


class NeverForgets(ByTheTable):
    def forget(self) -> None:
        """Nothing."""


class ForgetsNoDivision(ByTheTable):
    """Forgets the verdict of a step, and after `unscale_` never that the gradients are divided."""

    divided = False

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        super().unscale_(optimizer)
        self.divided = True

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if not self.divided:
            super().unscale_(optimizer)
        if not self.bad:
            optimizer.step()


class SkipsEverAfter(ByTheTable):
    """Steps no more once a gradient was bad. The scale follows what each step found."""

    ever_bad = False

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.bad is None:
            self.unscale_(optimizer)
        self.ever_bad = self.ever_bad or self.bad
        if not self.ever_bad:
            optimizer.step()


class SkipsEverAfterItsOwn(SkipsEverAfter):
    """Notes only what step itself has found, so that it steps on what an earlier call of `unscale_` found."""

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.bad is None:
            self.unscale_(optimizer)
            self.ever_bad = self.ever_bad or self.bad
        if not self.ever_bad:
            optimizer.step()


class BadEverAfter(ByTheTable):
    """Adds what each step finds to what earlier ones found: no more steps, and the scale falls in each."""

    ever_bad = False

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        super().unscale_(optimizer)
        self.ever_bad = self.bad = self.ever_bad or self.bad


class GrowsEveryTime(ByTheTable):
    """Grows in every clean step, whatever the interval."""

    def update(self) -> None:
        if not self.bad:
            self.n_clean = self.case.growth_interval - 1
        super().update()


class FiniteInHalf(ByTheTable):
    def is_bad(self, grad: Tensor) -> bool:
        return not (grad.abs() <= torch.finfo(torch.float16).max).all()


class FiniteInHalfBeforeDividing(FiniteInHalf):
    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        held = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        bad = any(self.is_bad(grad) for grad in held)
        super().unscale_(optimizer)
        self.bad = bad


class FirstAlone(ByTheTable):
    def looked_at(self, grads: Sequence[Tensor]) -> Sequence[Tensor]:
        return grads[:1]


class LastAlone(ByTheTable):
    def looked_at(self, grads: Sequence[Tensor]) -> Sequence[Tensor]:
        return grads[-1:]


class FirstUsual(ByTheTable):
    """Of the gradients that are there in every step the first."""

    def looked_at(self, grads: Sequence[Tensor]) -> Sequence[Tensor]:
        return grads[-2:-1]


class AnyFinite(ByTheTable):
    def is_bad(self, grad: Tensor) -> bool:
        return not grad.isfinite().any()


class StopsAtNone(ByTheTable):
    """Leaves `unscale_` where a parameter has no gradient: the first one has none in every second step."""

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        first = optimizer.param_groups[0]["params"][0]
        if first.grad is None:
            self.bad = False
        else:
            super().unscale_(optimizer)


class UpdatesInStep(ByTheTable):
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        super().step(optimizer)
        self.update()


class StartsAtOne(ByTheTable):
    def __init__(self, case: ScaledTraining) -> None:
        super().__init__(case)
        self.n_clean = 1


class NanAlone(ByTheTable):
    def is_bad(self, grad: Tensor) -> bool:
        return bool(grad.isnan().any())


class InfinityAlone(ByTheTable):
    def is_bad(self, grad: Tensor) -> bool:
        return bool(grad.isinf().any())


class NeverGrows(ByTheTable):
    def grow(self) -> None:
        """Nothing."""


class CountsOn(ByTheTable):
    def grow(self) -> None:
        self.now *= self.case.growth_factor


class ChecksBeforeCounting(ByTheTable):
    """Asks whether it is time to grow before it counts the step, so that growth counts as the first of the next."""

    def update(self) -> None:
        if not self.bad:
            if self.n_clean == self.case.growth_interval:
                self.grow()
            self.n_clean += 1
        else:
            self.now *= self.case.backoff_factor
            self.n_clean = 0
        self.forget()


class GrowsLate(ByTheTable):
    late = 1


class GrowsEarly(ByTheTable):
    late = -1


def played(run: CaseRun[ScaledTraining], scaler: type[ByTheTable]) -> dict[str, object]:
    """What such a scaler makes of the run's gradients."""
    return play(scaler(run.case), run.case, run.tree)


def as_if(*scalers: type[ByTheTable]) -> Callable[[CaseRun[ScaledTraining]], bool]:
    """A diagnosis: scale, weights and optimizer states are, after every step, those of one of these scalers."""

    def same(run: CaseRun[ScaledTraining]) -> bool:
        return any(_agree(run.got, run.memo(played, scaler)) for scaler in scalers)

    return same


def _agree(got: dict, wrong: dict) -> bool:
    near = {"rtol": 1e-3, "atol": 1e-5, "equal_nan": True}
    return list(got[SCALE].values()) == list(wrong[SCALE].values()) and all(
        torch.allclose(got[name], wrong[name], **near) for name in (WEIGHTS, STATE, RARE)
    )
