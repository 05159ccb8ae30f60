"""The figures of lab 02's first half, all drawn by calling the student's own functions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure
from labkit.formats import BF16, FORMATS, FP8_E4M3FN, FP8_E5M2, FP16, FP32, FloatFormat

Decode = Callable[[torch.Tensor, FloatFormat], torch.Tensor]
Encode = Callable[[torch.Tensor, FloatFormat], torch.Tensor]

NORMAL, SUBNORMAL = YOURS, "#e08a00"
E3M2 = FloatFormat("e3m2", 3, 2)
# Sign, exponent, mantissa: apart for every kind of colour vision, and light enough for black digits.
FIELD_COLOURS = ("#cfd5dc", "#f6c26b", "#9ecbee")


def number_line(decode: Decode) -> Figure:
    """Above: the values of three small formats from 0 to 2, one stroke each. Below: how far each format reaches.

    decode: (int64 patterns, format) -> float64 values.
    """
    figure = LabFigure(figsize=(8.0, 5.4), dpi=DPI, layout="constrained", facecolor="white")
    near, far = figure.subplots(2, 1, height_ratios=(1, 1.35))
    _strokes(near, decode, (E3M2, FP8_E5M2, FP8_E4M3FN))
    _reaches(far, decode, (FP8_E4M3FN, FP8_E5M2, FP16, BF16, FP32))
    return figure


def bit_fields(value: float, encode: Encode, decode: Decode) -> Figure:
    """The bits of one number in every format, one format a row, with what it has become.

    encode: (float32 values, format) -> int64 patterns; decode: (patterns, format) -> float64 values. The error is that
    against `value` as it was given, so that fp32 has one too. fp32 is not encoded but read from memory: an answer may
    look up its patterns in a table of all values, which for 32 bits would take 16 GiB.
    """
    figure, axes = new_figure(8.0, 3.4)
    axes.set_axis_off()
    x = torch.tensor([value], dtype=torch.float32)
    for row, fmt in enumerate(FORMATS):
        pattern = x.view(torch.int32).long() & 0xFFFFFFFF if fmt == FP32 else encode(x, fmt)
        stored = float(decode(pattern, fmt)[0])
        _boxes(axes, -row, f"{int(pattern[0]):0{fmt.total_bits}b}", fmt)
        axes.text(-0.6, -row, fmt.name, ha="right", va="center", fontsize=10)
        axes.text(38.8, -row, f"{stored:.7g}", ha="right", va="center", fontsize=10)
        axes.text(45.0, -row, _relative_error(stored, value), ha="right", va="center", fontsize=10)
    header = {"ha": "right", "va": "center", "fontsize": 9, "color": TRUTH}
    axes.text(38.8, 1.0, "value", **header)
    axes.text(45.0, 1.0, "relative error", **header)
    for x, name, colour in ((0.0, "sign", 0), (2.9, "exponent", 1), (8.0, "mantissa", 2)):
        axes.add_patch(Rectangle((x, 0.8), 0.8, 0.4, facecolor=FIELD_COLOURS[colour], edgecolor="none"))
        axes.text(x + 1.0, 1.0, name, ha="left", va="center", fontsize=9, color=TRUTH)
    axes.set_xlim(-4.2, 45.2)
    axes.set_ylim(-len(FORMATS) + 0.4, 1.5)
    return figure


def quantization_error(
    quantize_int8: Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    dequantize_int8: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor],
    outlier: float = 50.0,
) -> Figure:
    """The relative error of each channel of a weight matrix with one large channel, per tensor and per channel.

    quantize_int8 and dequantize_int8: as in exercise 02-int8-quantize; outlier: how many times larger channel 20 is.
    """
    x = torch.randn(32, 512, generator=torch.Generator().manual_seed(0)) * 0.02
    x[20] *= outlier
    figure, axes = new_figure(8.0, 3.6)
    for name, channel_dim, colour, marker in (
        ("one scale for the tensor", None, OTHER, "s"),
        ("one scale per channel", 0, YOURS, "o"),
    ):
        back = dequantize_int8(*quantize_int8(x, symmetric=True, channel_dim=channel_dim))
        error = ((back - x).norm(dim=1) / x.norm(dim=1)).double() * 100
        axes.plot(error, color=colour, marker=marker, markersize=5, linestyle="none")
        axes.text(31.6, float(error[-4:].mean()), name, color=colour, va="center", fontsize=10)
    axes.annotate(
        f"channel 20 is {outlier:g} times larger",
        (20, float(error[20])),
        (20, 5),
        ha="center",
        color=TRUTH,
        arrowprops={"arrowstyle": "->", "color": TRUTH},
    )
    axes.set_yscale("log")
    axes.set_ylim(0.2, 200)
    axes.set_yticks([1, 10, 100], ["1 %", "10 %", "100 %"])
    axes.set_xlim(-0.8, 42)
    axes.set_xticks(range(0, 32, 4))
    axes.set_xlabel("channel")
    axes.set_ylabel("norm of the error / norm of the weights")
    return figure


def _strokes(axes: Axes, decode: Decode, formats: tuple[FloatFormat, ...]) -> None:
    for row, fmt in enumerate(formats):
        values = decode(torch.arange(2 ** (fmt.total_bits - 1)), fmt)
        subnormal = torch.arange(len(values)) < 2**fmt.mantissa_bits
        for where, colour in ((~subnormal, NORMAL), (subnormal, SUBNORMAL)):
            shown = values[where & (values <= 2)]
            axes.vlines(shown, row - 0.3, row + 0.3, color=colour, linewidth=1.1)
    axes.set_yticks(range(len(formats)), [fmt.name for fmt in formats])
    axes.set_ylim(-0.6, len(formats) - 0.2)
    axes.set_xlim(-0.02, 2.02)
    axes.set_xticks([0, 0.25, 0.5, 1, 2], ["0", "¼", "½", "1", "2"])
    axes.set_title("every value from 0 to 2 (orange: zero and the subnormals)", fontsize=10, loc="left", color=TRUTH)
    _plain_frame(axes)


def _reaches(axes: Axes, decode: Decode, formats: tuple[FloatFormat, ...]) -> None:
    for row, fmt in enumerate(formats):
        # The largest value is among the last patterns, or among the last below an exponent of all ones.
        infinity = (2**fmt.exponent_bits - 1) << fmt.mantissa_bits
        ends = torch.tensor([infinity - 1, infinity + 2**fmt.mantissa_bits - 2])
        values = decode(ends, fmt)
        largest = float(values[values.isfinite()].max())
        smallest, first_normal = decode(torch.tensor([1, 2**fmt.mantissa_bits]), fmt).tolist()
        axes.plot([smallest, first_normal], [row, row], color=SUBNORMAL, linewidth=7, solid_capstyle="butt")
        axes.plot([first_normal, largest], [row, row], color=NORMAL, linewidth=7, solid_capstyle="butt")
        axes.text(smallest / 4, row, f"{smallest:.2g}", ha="right", va="center", fontsize=9, color=TRUTH)
        axes.text(
            largest * 4,
            row,
            f"{largest:.3g}" if largest > 1e6 else f"{largest:g}",
            ha="left",
            va="center",
            fontsize=9,
            color=TRUTH,
        )
    axes.set_xscale("log", base=10)
    axes.set_xlim(1e-54, 1e49)
    axes.set_xticks([10.0**power for power in range(-40, 41, 10)])
    axes.set_yticks(range(len(formats)), [fmt.name for fmt in formats])
    axes.set_ylim(-0.6, len(formats) - 0.4)
    axes.set_title("from the smallest positive value to the largest", fontsize=10, loc="left", color=TRUTH)
    _plain_frame(axes)


def _boxes(axes: Axes, y: float, digits: str, fmt: FloatFormat) -> None:
    for column, digit in enumerate(digits):
        field = 0 if column == 0 else 1 if column <= fmt.exponent_bits else 2
        box = Rectangle((column, y - 0.36), 0.94, 0.72, facecolor=FIELD_COLOURS[field], edgecolor="none")
        axes.add_patch(box)
        axes.text(column + 0.47, y - 0.02, digit, ha="center", va="center", fontsize=8.5, family="monospace")


def _relative_error(stored: float, exact: float) -> str:
    if stored == exact:
        return "0"
    return f"{abs(stored - exact) / abs(exact):.1e}" if exact else "-"


def _plain_frame(axes: Axes) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
