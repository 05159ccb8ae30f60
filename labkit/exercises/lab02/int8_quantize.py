"""Lab 02: int8 with a scale and a zero point, there and back."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labkit.spec import Answer, Case, Exercise


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
    points=1,
    optional=True,
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
