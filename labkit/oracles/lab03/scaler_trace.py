"""Lab 03: what came back of a scaled training, beside what PyTorch's scaler does: where the two part, and how.

The mistakes that are played instead are in `scaler_mistakes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from labkit.exercises.lab03.loss_scaler import LOSS, RARE, SCALE, SCALED, STATE, WEIGHTS, ScaledTraining
from labkit.spec import CANNOT_TELL, CaseRun


class ScalerTrace:
    """What came back, beside what PyTorch's scaler does."""

    def __init__(self, run: CaseRun[ScaledTraining]) -> None:
        self.case, self.got, self.right = run.case, run.got, run.expected
        self.scales, self.right_scales = list(run.got[SCALE].values()), list(self.right[SCALE].values())
        pairs = zip(self.right_scales, self.right_scales[1:])
        self.skipped = [after < before for before, after in pairs]  # by the right scaler, step by step

    @property
    def first(self) -> int:
        """The first step after which anything is wrong."""
        return min(self.first_wrong_scale, self.first_off(WEIGHTS), self.first_off(STATE))

    @property
    def first_wrong_scale(self) -> int:
        wrong = (step for step, pair in enumerate(zip(self.scales[1:], self.right_scales[1:])) if pair[0] != pair[1])
        return next(wrong, self.case.n_steps)

    def first_off(self, name: str) -> int:
        """The first step after which WEIGHTS, STATE or RARE are wrong."""
        right = self.right[name]
        off = ~torch.isclose(self.got[name], right, rtol=1e-4, atol=1e-6).reshape(len(right), -1).all(1)
        return int(off.nonzero()[0]) if off.any() else self.case.n_steps

    def moved(self, step: int) -> bool:
        """Whether the step changed weights or state in what came back."""
        if step == 0:
            return bool((self.got[STATE][0] != 0).any())
        return any(not torch.equal(self.got[name][step], self.got[name][step - 1]) for name in (WEIGHTS, STATE))

    def scale_change(self, step: int) -> float:
        return self.scales[step + 1] / self.scales[step]

    def fixed_factor(self, step: int) -> bool:
        """Whether the scale was doubled or halved in this step, where it should have changed by another factor."""
        right = self.right_scales[step + 1] / self.right_scales[step]
        return self.scale_change(step) == (2.0 if right > 1 else 0.5) and right not in (0.5, 1, 2)

    def times_too_large(self, step: int, factor: float) -> torch.Tensor:
        """For each parameter, whether its gradient was `factor` times too large in this step, by the momentum."""
        added, right = (self.momentum(state, step) for state in (self.got[STATE], self.right[STATE]))
        return torch.isclose(added, right * factor, rtol=0.01).all(1)

    @staticmethod
    def momentum(state: torch.Tensor, step: int) -> torch.Tensor:
        """What the step has added to the momentum, or to the first moment."""
        before = state[step - 1, :, :4] if step else 0.0
        return state[step, :, :4] - 0.9 * before

    def scales_wrongly(self) -> bool:
        """Whether a loss was scaled wrongly while weights and scale were still right."""
        steps = [f"in step {step}" for step in range(min(self.first + 1, self.case.n_steps))]
        pairs = [(self.got[SCALED][step], self.right[SCALED][step]) for step in steps]
        return any(isinstance(value, str) or not math.isclose(value, right, rel_tol=1e-4) for value, right in pairs)

    def changes_the_loss(self) -> object:
        """Whether scale(loss) left another loss behind; a scale of 1 would leave the same."""
        if self.right_scales[0] == 1:
            return CANNOT_TELL
        return self.got[LOSS]["in step 0"] != self.right[LOSS]["in step 0"]

    def only_rare(self, odd: bool) -> bool:
        """Whether nothing but the rare parameter is off, from an odd step on (with a gradient) or an even one."""
        first = self.first_off(RARE)
        return self.first == self.case.n_steps > first and bool(first % 2) == odd

    def still_scaled(self, step: int) -> torch.Tensor:
        """For each parameter, whether its gradient reached the optimizer undivided."""
        return self.times_too_large(step, self.right_scales[step]) & (not self.skipped[step])


def trace(when: Callable[[ScalerTrace], object]) -> Callable[[CaseRun[ScaledTraining]], object]:
    """A diagnosis of 03-loss-scaler."""
    return lambda run: when(run.memo(ScalerTrace))
