"""The figures of lab 05's first half: what recomputation does to memory over time, and what a segment's length does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import functional as F

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure
from labkit.material.lab05 import NeverEnds, calls_limited
from labkit.meters import track_memory, track_ops
from labkit.meters.memory import MemoryProfile
from labkit.observe import known_settings
from labkit.spec import MiB

Layer = Callable[[Tensor], Tensor]
Checkpoint = Callable[..., Tensor]
LowMemoryBackward = Callable[[Sequence[Layer], Tensor], tuple[Tensor, Tensor]]
RunInSegments = Callable[[Sequence[Layer], Tensor, int, Checkpoint], Tensor]

WIDTH = 64
N_ROWS = 1024


def backpropagation_memory(
    low_memory_backward: LowMemoryBackward,
    run_in_segments: RunInSegments,
    checkpoint: Checkpoint,
    n_layers: int = 16,
    n_segments: int = 6,
) -> Figure:
    """Live memory of a forward and a backward pass done in three ways, on one axis, each as long as its work.

    The functions are those of 05-low-memory, 05-segments and 05-checkpoint. Memory is beyond parameters and input.
    A layer keeps two tensors of its output's size; for 16 of these, six segments are best.
    """
    x, layers = _gated_layers(n_layers)

    def regular() -> None:
        x.grad = None
        out = x
        for layer in layers:
            out = layer(out)
        out.backward()

    n_calls = 0

    def counted(fn: Layer, *args: Tensor) -> Tensor:
        nonlocal n_calls
        n_calls += 1
        return checkpoint(fn, *args)

    def in_segments() -> None:
        nonlocal n_calls
        n_calls, x.grad = 0, None
        run_in_segments(layers, x, n_segments, counted).backward()

    def low_memory() -> None:
        low_memory_backward(layers, x.detach())

    figure, axes = new_figure(8.4, 4.2)
    regular_end = 0
    for name, run, color in (
        ("regular", regular, OTHER),
        ("{n} checkpointed segments", in_segments, YOURS),
        ("only the input kept", low_memory, TRUTH),
    ):
        with known_settings():
            # Nothing that is made at the first run only may be part of the picture.
            run()
            profile = _profile(run)
        curve = _beyond_the_start(profile)
        axes.plot(range(len(curve)), curve, color=color, linewidth=1.6)
        peak = max(range(len(curve)), key=curve.__getitem__)
        axes.plot(peak, curve[peak], "o", color=color, markersize=6)
        # Labels stand clear of the other curves: above the end of the long one, past the end of the first.
        regular_end = regular_end or len(curve) - 1
        at, shift, side = {
            OTHER: (peak, (9, 0), "left"),
            YOURS: (regular_end, (0, 6), "left"),
            TRUTH: (len(curve) - 1, (0, 6), "right"),
        }[color]
        label = f"{name.format(n=n_calls)}: {curve[peak]:.2f} MiB, {len(curve) - 1} operations"
        axes.annotate(label, (at, curve[peak]), shift, textcoords="offset points", color=color, ha=side, va="bottom")
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.set_xlabel("operations since the start")
    axes.set_ylabel("live memory beyond weights and input (MiB)")
    return figure


def segment_tradeoff(
    run_in_segments: RunInSegments,
    checkpoint: Checkpoint,
    best_segments: Callable[[int, float], int],
    n_layers: int = 36,
    cost: int = 4,
) -> Figure:
    """Left: the measured peak against the number of segments k, beside k + cL/k. Right: the extra FLOPs.

    The functions are those of 05-segments and 05-checkpoint. A layer keeps `cost` tensors of its output's size.
    """
    best = best_segments(n_layers, cost)
    counts = sorted({best, *(math.ceil(n_layers / length) for length in range(1, n_layers + 1))})
    x, layers = _deep_layers(n_layers, cost)
    with known_settings():
        plain_peak, plain_flops = _measured(lambda: _chain(layers, x), x)
        try:
            measured = [_measured(partial(run_in_segments, calls_limited(layers), x, k, checkpoint), x) for k in counts]
        except NeverEnds as error:
            # Raised anew: its trace goes through every layer, there and back.
            raise NeverEnds(str(error)) from None
    figure = LabFigure(figsize=(9.0, 3.8), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    left.plot(counts, [k + cost * n_layers / k for k in counts], color=TRUTH, linewidth=1, linestyle="--")
    left.plot(counts, [peak for peak, _ in measured], color=YOURS, marker="o", markersize=4, linewidth=1.4)
    left.axhline(plain_peak, color=OTHER, linewidth=1.2)
    left.annotate(
        "no checkpoint",
        (n_layers, plain_peak),
        (0, 4),
        textcoords="offset points",
        color=OTHER,
        ha="right",
        va="bottom",
    )
    at_best = measured[counts.index(best)][0]
    left.annotate(
        f"your k = {best}: {at_best:.0f} outputs",
        (best, at_best),
        (0, 44),
        textcoords="offset points",
        color=YOURS,
        ha="center",
        arrowprops={"arrowstyle": "->", "color": YOURS},
    )
    left.annotate(
        "k + cL/k",
        (n_layers, n_layers + cost),
        (0, -20),
        textcoords="offset points",
        ha="right",
        va="top",
        color=TRUTH,
    )
    left.set_ylabel("peak, in outputs of a layer")
    left.set_ylim(0, 1.2 * plain_peak)
    extra = [100 * (flops / plain_flops - 1) for _, flops in measured]
    right.plot(counts, extra, color=YOURS, marker="o", markersize=4, linewidth=1.4)
    right.axhline(100 / 3, color=TRUTH, linewidth=1, linestyle="--")
    right.annotate("one more forward pass", (1.05, 100 / 3), (0, 8), textcoords="offset points", color=TRUTH)
    right.set_ylabel("extra FLOPs, % of a training step")
    right.set_ylim(0, 45)
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        ticks = [k for k in (1, 2, 3, 6, 12, 18, 36) if k <= n_layers]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_xlabel("segments k (logarithmic)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure


def _gated_layers(n_layers: int) -> tuple[Tensor, list[Layer]]:
    """The input, and layers x -> x * sigmoid(x w), whose last one returns the mean, a scalar."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N_ROWS, WIDTH, generator=generator).requires_grad_()
    weights = [(torch.randn(WIDTH, WIDTH, generator=generator) * WIDTH**-0.5).requires_grad_() for _ in range(n_layers)]

    def layer(weight: Tensor, x: Tensor) -> Tensor:
        return x * torch.sigmoid(F.linear(x, weight))

    def last(weight: Tensor, x: Tensor) -> Tensor:
        return layer(weight, x).mean()

    return x, [*(partial(layer, weight) for weight in weights[:-1]), partial(last, weights[-1])]


def _deep_layers(n_layers: int, cost: int) -> tuple[Tensor, list[Layer]]:
    """The input, and layers of a product and `cost` hyperbolic tangents, each of which keeps its result."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 32, generator=generator).requires_grad_()
    weights = [(2 * torch.randn(32, 32, generator=generator) * 32**-0.5).requires_grad_() for _ in range(n_layers)]

    def layer(weight: Tensor, x: Tensor) -> Tensor:
        x = x @ weight
        for _ in range(cost):
            x = torch.tanh(x)
        return x

    return x, [partial(layer, weight) for weight in weights]


def _chain(layers: Sequence[Layer], x: Tensor) -> Tensor:
    for layer in layers:
        x = layer(x)
    return x


def _profile(run: Callable[[], object]) -> MemoryProfile:
    with track_memory(sites=False) as profile:
        run()
    return profile


def _beyond_the_start(profile: MemoryProfile) -> list[float]:
    """Live MiB at each point, less what there was before."""
    curve = profile.tracker.curve
    return [(n_bytes - curve[0]) / MiB for n_bytes in curve]


def _measured(forward: Callable[[], Tensor], x: Tensor) -> tuple[float, int]:
    """(peak in outputs of a layer, FLOPs) of a forward and a backward pass."""
    x.grad = None
    gradient = torch.ones_like(x)
    with track_ops() as operations:
        profile = _profile(lambda: forward().backward(gradient))
    return max(_beyond_the_start(profile)) * MiB / x.nbytes, operations.flops
