"""Lab 02: what came back from an int8 quantizer, and which of the usual mistakes it looks like."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.exercises.lab02.int8_quantize import Weights
from labkit.spec import CANNOT_TELL, CaseRun

SLACK = 1e-3
"""Of a step: what float32 rounding may add."""

GUARD = torch.finfo(torch.float32).eps
"""What an epsilon that guards a division may add to a scale; PyTorch's own observers hold it above this."""


def ends_of(x: torch.Tensor, channel_dim: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest and the largest value, zero included: of x, or of each channel in a shape that broadcasts."""
    axes = [axis for axis in range(x.dim()) if channel_dim is not None and axis != channel_dim % x.dim()]
    per_channel = channel_dim is not None
    return x.amin(axes, keepdim=per_channel).clamp(max=0), x.amax(axes, keepdim=per_channel).clamp(min=0)


class Attempt:
    """What came back, beside the ranges of the channels."""

    def __init__(self, run: CaseRun[Weights]) -> None:
        self.symmetric, self.per_channel = run.case.symmetric, run.case.channel_dim is not None
        self.x, self.got, self.scale = run.tree["x"], run.got, run.got["scale"]
        self.low, self.high = ends_of(self.x, run.case.channel_dim)
        self.used = self.high > self.low  # channels that are not all zeros

    def range_without_zero(self) -> object:
        """Whether the scale is that of the values alone, wherever 0 lies outside their range."""
        axes = [axis for axis in range(self.x.dim()) if self.scale.dim() == 0 or self.scale.shape[axis] == 1]
        bare = (self.x.amax(axes) - self.x.amin(axes)).reshape(self.scale.shape)
        narrow = (bare < (self.high - self.low) * (1 - SLACK)) & (bare > 0)
        if self.symmetric or not narrow.any():
            return False if self.symmetric else CANNOT_TELL
        return torch.allclose(255 * self.scale[narrow], bare[narrow], rtol=SLACK)

    @property
    def error(self) -> torch.Tensor:
        """How far off every value is, in steps of the scale that came back."""
        return ((self.got["back"] - self.x) / self.scale).abs()

    @property
    def scale_of_all(self) -> torch.Tensor:
        """The scale that the tensor as a whole would have."""
        low, high = ends_of(self.x, None)
        return torch.maximum(-low, high) / 127 if self.symmetric else (high - low) / 255

    @property
    def exact_codes(self) -> torch.Tensor:
        """x / scale + zero_point, before any rounding."""
        return self.x.double() / self.scale.double() + self.got["zero_point"]

    def zero_point_cut(self) -> bool:
        """Whether every zero point belongs to its scale, and one is not the nearest whole number."""
        off = (self.got["zero_point"] - (-128 - self.low.double() / self.scale.double()))[self.used].abs()
        return not self.symmetric and bool((off < 1 + SLACK).all() and (off > 0.5 + SLACK).any())

    def zero_point_mirrored(self) -> bool:
        """Whether every zero point is as far below -128 as it should lie above."""
        off = (self.got["zero_point"] - (-128 + self.low.double() / self.scale.double()))[self.used].abs()
        return not self.symmetric and bool(self.used.any() and (off < 1 + SLACK).all())

    def zero_point_from_zero(self) -> bool:
        """Whether every zero point is the one for codes from 0 to 255."""
        off = (self.got["zero_point"] - (-self.low.double() / self.scale.double()))[self.used].abs()
        return not self.symmetric and bool(self.used.any() and (off < 1 + SLACK).all())

    def zero_point_not_added(self) -> bool:
        """Whether the codes are those of zero point 0, although there is another."""
        codes = torch.round(self.x / self.scale).clamp(-128, 127)
        return bool((self.got["zero_point"] != 0).any()) and torch.equal(self.got["q"].float(), codes)

    def counted_from_the_smallest(self) -> bool:
        """Whether a code is -128 plus the rounded number of steps above the smallest value."""
        if self.symmetric or not self.step_is(self.high - self.low, 255) or (self.error <= 0.5 + SLACK).all():
            return False
        codes = torch.round((self.x - self.low) / self.scale) - 128
        return ((self.got["q"] - codes).abs() < 0.5).double().mean() > 0.99

    def codes_cut(self) -> bool:
        """Whether every code is an exact one without its fraction: cut toward zero, or down."""
        q, zero_point, exact = self.got["q"].double(), self.got["zero_point"].double(), self.exact_codes
        cut = [exact.trunc(), exact.floor(), (exact - zero_point).trunc() + zero_point]
        # A whole number may have come out just below itself in float32.
        whole = (exact - exact.round()).abs() <= SLACK
        return any(((q == way.clamp(-128, 127)) | whole).all() for way in cut)

    def goes_back_by(self, way: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]) -> bool:
        """Whether dequantize_int8 computes way(q, scale, zero_point), which is not the right value."""
        q, scale, zero_point = (self.got[name].double() for name in ("q", "scale", "zero_point"))
        slack, found, right = SLACK * scale, way(q, scale, zero_point), (q - zero_point) * scale
        same = ((self.got["back"].double() - found).abs() <= slack + 1e-6 * found.abs()).all()
        return bool(same and ((found - right).abs() > slack).any())

    def scale_has_a_floor(self) -> bool:
        """Whether the scales that are too large are all one and the same number."""
        span = torch.maximum(-self.low, self.high) / 127 if self.symmetric else (self.high - self.low) / 255
        above = self.scale[self.used & (self.scale > span * (1 + SLACK) + GUARD)]
        rest = self.used & (self.scale < span * (1 - SLACK))
        return bool(above.numel() and (above == above[0]).all() and above[0] <= 1e-3 and not rest.any())

    def step_is(self, span: torch.Tensor, n_steps: int) -> bool:
        """Whether the scale that came back is span / n_steps, in all channels that are not all zeros."""
        steps, wanted = self.scale * n_steps, span.expand_as(self.scale)
        return bool(self.used.any()) and torch.allclose(steps[self.used], wanted[self.used], rtol=SLACK)


def attempt(when: Callable[[Attempt], object]) -> Callable[[CaseRun[Weights]], object]:
    """A diagnosis of 02-int8-quantize."""
    return lambda run: when(run.memo(Attempt))
