"""The figure of lab 00: the root-mean-square in float16 as the values grow, the student's against the naive one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, SHADE, TRUTH, YOURS, new_figure

N_VALUES = 1024
EXPONENTS = range(-18, 15)


def rms_over_scale(rms: Callable[[torch.Tensor, int], torch.Tensor]) -> Figure:
    """The ratio of a float16 root-mean-square to the true one, for values of size 2**-18 to 2**14.

    rms: (x, dim) -> the root-mean-square along `dim`, in the dtype of x.
    """
    scales = [2.0**exponent for exponent in EXPONENTS]
    naive = [_ratio(_naive_rms, scale) for scale in scales]
    yours = [_ratio(rms, scale) for scale in scales]
    highest = 1.5

    figure, axes = new_figure()
    axes.axhline(1, color=TRUTH, linewidth=1, linestyle="--", label="exact")
    # Where the square of a value of this size is a normal float16.
    info = torch.finfo(torch.float16)
    axes.axvspan(info.smallest_normal**0.5, info.max**0.5, color=SHADE, zorder=0)
    for name, ratios, colour, marker, size in (
        ("squared in float16", naive, OTHER, "o", 6),
        ("yours", yours, YOURS, ".", 7),
    ):
        shown = [min(ratio, highest) for ratio in ratios]
        axes.plot(scales, shown, color=colour, marker=marker, markersize=size, linewidth=1.2, label=name)
    axes.set_xscale("log", base=2)
    axes.set_ylim(-0.08, highest + 0.08)
    axes.set_yticks([0, 0.5, 1, highest], ["0", "0.5", "1", "infinity"])
    axes.set_xlabel("size of the values (grey: their squares are normal float16 numbers)")
    axes.set_ylabel("result / true value")
    axes.legend(loc="lower right", frameon=False)
    return figure


def _naive_rms(x: torch.Tensor, dim: int) -> torch.Tensor:
    return x.square().mean(dim).sqrt()


def _ratio(rms: Callable[[torch.Tensor, int], torch.Tensor], scale: float) -> float:
    """The result for random float16 values of this size, over the float64 one of the same values."""
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(1, N_VALUES, generator=generator) * scale).clamp(-65504, 65504).to(torch.float16)
    true = torch.linalg.vector_norm(x.double()) / N_VALUES**0.5
    return float(rms(x, 1).double() / true)
