"""The figure of lab 04's two batch sizes: the hardware's, from which the GPU is busy, and the problem's."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure

TokensPerSecond = Callable[..., float]
GPU = (312e12, 2039e9)
"""An A100 in float16: FLOP/s, bytes/s."""
WIDTH, ITEMSIZE, OPTIMIZER_BYTES = 4096, 2, 28
SMALLEST, LARGEST = 4, 20
"""Powers of two of the batch size in tokens."""


def two_batch_sizes(
    tokens_per_second: TokensPerSecond, busy_rows: float, critical_tokens: float, batch: int | None = None
) -> Figure:
    """Upper: tokens per second of a layer against the batch in tokens. Lower: steps and tokens to reach a target, each
    in units of the fewest, by (S / S_min - 1) (E / E_min - 1) = 1.

    busy_rows, critical_tokens: the hardware's and the problem's batch size, marked. batch: marked where given.
    """
    figure = LabFigure(figsize=(8.0, 5.0), dpi=DPI, layout="constrained", facecolor="white")
    upper, lower = figure.subplots(2, 1, sharex=True)
    sizes = 2 ** np.arange(SMALLEST, LARGEST + 0.1, 0.25)
    rates = [speed_of(tokens_per_second, size) for size in sizes]
    steps = 1 + critical_tokens / sizes
    work = 1 + sizes / critical_tokens
    upper.plot(sizes, rates, color=YOURS, linewidth=2)
    upper.set_ylabel("tokens per second")
    lower.plot(sizes, steps, color=YOURS, linewidth=2, label="steps, in units of the fewest")
    lower.plot(sizes, work, color=OTHER, linewidth=2, label="tokens, in units of the fewest")
    lower.set_ylim(1, 1e3)
    lower.set_ylabel("to the target")
    lower.set_xlabel("batch size, tokens")
    lower.legend(loc="upper center", frameon=False, fontsize=9)
    for axes in (upper, lower):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
    for axes, place, name in ((upper, busy_rows, "compute-bound"), (lower, critical_tokens, "critical batch")):
        axes.axvline(place, color=TRUTH, linestyle="--", linewidth=1)
        axes.text(place, 0.55, f" {name}: {place:,.0f}", transform=axes.get_xaxis_transform(), color=TRUTH, fontsize=9)
    if batch is not None:
        for axes in (upper, lower):
            axes.axvline(batch, color="#ef8f00", linewidth=1.6)
        upper.set_title(
            f"{batch:,} tokens: {speed_of(tokens_per_second, batch):,.0f} tokens/s; "
            f"{1 + critical_tokens / batch:.3g} times the fewest steps, "
            f"{1 + batch / critical_tokens:.3g} times the fewest tokens",
            loc="left",
            fontsize=10,
        )
    return figure


def batch_slider(tokens_per_second: TokensPerSecond, busy_rows: float, critical_tokens: float) -> object:
    """`two_batch_sizes` under a slider over the batch size; without ipywidgets, at 4096 tokens."""
    if importlib.util.find_spec("ipywidgets") is None:
        return two_batch_sizes(tokens_per_second, busy_rows, critical_tokens, 4096)
    import ipywidgets
    from IPython.display import display

    speed_of(tokens_per_second, 1)  # a blank answer is met here, and not under the slider
    slider = ipywidgets.IntSlider(value=12, min=SMALLEST, max=LARGEST, description="log2 tokens")
    shown = ipywidgets.interactive_output(
        lambda power: display(two_batch_sizes(tokens_per_second, busy_rows, critical_tokens, 2**power)),
        {"power": slider},
    )
    return ipywidgets.VBox([slider, shown])


def speed_of(tokens_per_second: TokensPerSecond, tokens: float) -> float:
    """One text of so many tokens a step."""
    return tokens_per_second(1, tokens, WIDTH, 1, *GPU, ITEMSIZE, OPTIMIZER_BYTES)
