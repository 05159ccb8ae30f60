"""Lab 02, first half: what a bit pattern means, how a value is rounded into one, and int8 quantization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from labkit.formats import BF16, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32, FloatFormat
from labkit.spec import Answer, Case, Exercise

E3M2 = FloatFormat("e3m2", 3, 2)
"""A made-up format of 64 patterns, small enough to be written out on paper."""

MAX_PATTERNS = 90_000
"""Of ties and values in one case of 02-encode: all of fp16's and bf16's, a random choice of tf32's."""


@dataclass(frozen=True)
class FormatCase(Case):
    """A format, spelled out in plain data."""

    format: str
    exponent_bits: int
    mantissa_bits: int
    finite_only: bool = False

    @classmethod
    def of(cls, fmt: FloatFormat, **more) -> FormatCase:
        """The case of a FloatFormat."""
        return cls(fmt.name, fmt.exponent_bits, fmt.mantissa_bits, fmt.finite_only, **more)

    @property
    def fmt(self) -> FloatFormat:
        """The format as answers receive it."""
        return FloatFormat(self.format, self.exponent_bits, self.mantissa_bits, self.finite_only)


def pattern_inputs(case: FormatCase, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """bits: every pattern of a format of up to 16 bits, a row for each sign; else random ones and all corners."""
    if case.fmt.total_bits <= 16:
        return {"bits": torch.arange(2**case.fmt.total_bits).reshape(2, -1)}
    top, full = 2**case.exponent_bits - 1, 2**case.mantissa_bits - 1
    corners = torch.cartesian_prod(
        torch.tensor([0, 1]), torch.tensor([0, 1, top // 2, top - 1, top]), torch.tensor([0, 1, full // 2, full])
    )
    sign, exponent, mantissa = corners.unbind(1)
    corners = (sign << (case.fmt.total_bits - 1)) + (exponent << case.mantissa_bits) + mantissa
    return {"bits": torch.cat([corners, torch.randint(2**case.fmt.total_bits, (8000,), generator=gen)])}


DECODE = Exercise(
    id="02-decode",
    title="The value of a bit pattern",
    points=3,
    minutes=10,
    difficulty=2,
    answers=(Answer("decode"),),
    public=tuple(FormatCase.of(fmt) for fmt in (FP16, BF16, FP8_E5M2, FP8_E4M3FN, FP32, TF32, E3M2)),
    inputs=pattern_inputs,
    drive=lambda ans, case, tree, stage: {"out": ans.decode(tree["bits"], case.fmt)},
)


def float_inputs(case: FormatCase, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """x: float32 values that land on, between and exactly half-way between the format's values, and beyond; two rows.

    A float32 whose fraction has at most mantissa_bits + 1 bits is a value of the format or a tie. All of them within
    the format's range are taken (a random choice of them where they are too many), then their close neighbours, then
    random patterns of every size, then the special values.
    """
    free_bits = 22 - case.mantissa_bits  # low bits of a float32 fraction that are zero in every tie
    reach = 2 ** (case.exponent_bits - 1)
    first, last = max(127 - reach - case.mantissa_bits, 0), min(127 + reach + 1, 255)
    per_exponent = 2 ** (case.mantissa_bits + 1)
    ties = torch.arange(first * per_exponent, last * per_exponent)
    if len(ties) > MAX_PATTERNS:
        ties = ties[torch.randperm(len(ties), generator=gen)[:MAX_PATTERNS].sort()[0]]
    ties = ties << free_bits
    near = ties[torch.randint(len(ties), (4000,), generator=gen)] + torch.randint(-3, 4, (4000,), generator=gen)
    inside = torch.randint(first << 23, last << 23, (8000,), generator=gen)
    anything = torch.randint(255 << 23, (2000,), generator=gen)
    special = torch.tensor([0, 1, 2**23 - 1, 2**23, (255 << 23) - 1, 255 << 23, (255 << 23) + 1, 0x7FC00000, 2**31 - 1])
    magnitude = torch.cat([special, special, ties, near.clamp(min=0), inside, anything])
    sign = torch.randint(2, magnitude.shape, generator=gen)
    sign[: 2 * len(special)] = torch.arange(2).repeat_interleave(len(special))
    return {"x": (magnitude + (sign << 31)).to(torch.int32).view(torch.float32).reshape(2, -1)}


def one_nan(bits: object, case: FormatCase) -> object:
    """The patterns with every NaN, whatever its sign and payload, written as the one with all ones below the sign."""
    if not isinstance(bits, torch.Tensor) or bits.dtype != torch.int64:
        return bits
    ones = 2 ** (case.fmt.total_bits - 1) - 1
    largest_number = ones - 1 if case.finite_only else ones - (2**case.mantissa_bits - 1)
    within = (bits >= 0) & (bits <= 2 * ones + 1)
    return torch.where(within & ((bits & ones) > largest_number), ones, bits)


ENCODE = Exercise(
    id="02-encode",
    title="Round a value into any format",
    points=4,
    minutes=15,
    difficulty=3,
    answers=(Answer("encode"),),
    public=tuple(FormatCase.of(fmt) for fmt in (FP16, BF16, FP8_E5M2, FP8_E4M3FN, TF32, E3M2)),
    inputs=float_inputs,
    drive=lambda ans, case, tree, stage: {"out": one_nan(ans.encode(tree["x"], case.fmt), case)},
)


def drive_table(ans, case: FormatCase, tree: dict, stage) -> object:
    """The four limits as plain numbers; a one-element tensor counts as its number."""
    limits = ans.format_limits(case.fmt)
    if not isinstance(limits, Mapping):
        return limits
    return {
        name: value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
        for name, value in limits.items()
    }


FORMAT_TABLE = Exercise(
    id="02-format-table",
    title="The limits of a format",
    points=2,
    minutes=6,
    difficulty=1,
    answers=(Answer("format_limits"),),
    public=tuple(FormatCase.of(fmt) for fmt in (FP32, TF32, BF16, FP16, FP8_E5M2, FP8_E4M3FN, E3M2)),
    inputs=lambda case, gen: {},
    drive=drive_table,
)


@dataclass(frozen=True)
class Weights(Case):
    """A tensor to quantize. kind: "normal", "positive" (far from zero), "outlier" (one large channel), "constant"
    (one channel holds a single value), "small" (of the size of gradients), "zeros" (one channel is all zero),
    "all zeros" or "half-way" (per tensor: the zero point is half-way between two codes)."""

    shape: tuple[int, ...]
    symmetric: bool
    channel_dim: int | None
    kind: str = "normal"


def weight_inputs(case: Weights, gen: torch.Generator) -> dict[str, torch.Tensor]:
    """x: float32 weights of the usual size, each channel on a scale of its own, every seventh one an exact zero."""
    dim = 0 if case.channel_dim is None else case.channel_dim
    sizes = [1] * len(case.shape)
    sizes[dim] = case.shape[dim]
    x = torch.randn(case.shape, generator=gen) * 0.02 * (0.5 + 2 * torch.rand(sizes, generator=gen))
    if case.kind == "positive":
        x = x.abs() + 0.3
    if case.kind == "small":
        x = x * 3e-4
    if case.kind == "all zeros":
        x = torch.zeros(case.shape)
    if case.kind == "half-way":
        # -128 - low / scale is -126.5, which rounds to -126, and the largest value is 127.5 steps above that.
        step = 2.0**-10
        x = step * torch.randint(-1, 254, case.shape, generator=gen)
        x.view(-1)[1:3] = torch.tensor([-1.5 * step, 253.5 * step])
    channel = x.movedim(dim, 0)[1]
    if case.kind == "outlier":
        channel.mul_(150.0)
    if case.kind != "positive":
        x.view(-1)[::7] = 0.0
    if case.kind in ("constant", "zeros"):
        channel.fill_(0.07 if case.kind == "constant" else 0.0)
    return {"x": x}


def drive_quantize(ans, case: Weights, tree: dict, stage) -> dict:
    """What the student's pair makes of x, there and back."""
    made = ans.quantize_int8(tree["x"], symmetric=case.symmetric, channel_dim=case.channel_dim)
    if not isinstance(made, tuple | list) or len(made) != 3:
        return {"made": made}
    q, scale, zero_point = made
    return {"q": q, "scale": scale, "zero_point": zero_point, "back": ans.dequantize_int8(q, scale, zero_point)}


INT8_QUANTIZE = Exercise(
    id="02-int8-quantize",
    title="int8 with a scale, per tensor and per channel",
    points=3,
    minutes=12,
    difficulty=2,
    answers=(Answer("quantize_int8"), Answer("dequantize_int8")),
    public=(
        Weights((64, 48), symmetric=True, channel_dim=None),
        Weights((64, 48), symmetric=True, channel_dim=0, kind="outlier"),
        Weights((64, 48), symmetric=False, channel_dim=None),
        Weights((64, 48), symmetric=False, channel_dim=1, kind="outlier"),
        Weights((32, 40), symmetric=False, channel_dim=None, kind="positive"),
        Weights((8, 6, 10), symmetric=False, channel_dim=0, kind="constant"),
        Weights((8, 6, 10), symmetric=True, channel_dim=2, kind="zeros"),
        Weights((5, 7), symmetric=False, channel_dim=None, kind="all zeros"),
        Weights((24, 16), symmetric=False, channel_dim=0, kind="small"),
        Weights((12, 9), symmetric=False, channel_dim=None, kind="half-way"),
    ),
    inputs=weight_inputs,
    drive=drive_quantize,
    forbids=(
        "torch.quantize_per_tensor",
        "torch.quantize_per_tensor_dynamic",
        "torch.quantize_per_channel",
        "torch.fake_quantize_per_tensor_affine",
        "torch.fake_quantize_per_channel_affine",
        "torch.ao.quantization.MinMaxObserver",
        "torch.ao.quantization.PerChannelMinMaxObserver",
    ),
)
