"""Figures of lab 03: a scaler at work, dtypes under autocast, bytes against rows, times of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.exercises.lab03.autocast_ops import Op
from labkit.exercises.lab03.loss_scaler import HalfPrecisionLoss
from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, new_figure

Dtypes = Callable[[Sequence[Op], Mapping[str, torch.dtype], torch.dtype], Mapping[str, torch.dtype]]
# Okabe and Ito's colours, light enough for black letters.
DTYPE_COLOURS = {
    torch.float64: "#cc9fbd",
    torch.float32: "#9ecbee",
    torch.float16: "#f6c26b",
    torch.bfloat16: "#f6c26b",
}


def loss_scale_trace(make_scaler: Callable[..., Any], n_steps: int = 300, growth_interval: int = 20) -> Figure:
    """The scale over a made-up training whose gradients grow and have a burst, beside GradScaler's.

    make_scaler: called with init_scale and growth_interval; what it returns has GradScaler's methods. GradScaler
    itself is drawn alone.
    """
    settings = {"init_scale": 2.0**24, "growth_interval": growth_interval}
    grads = _made_up_gradients(n_steps)
    pytorch = _scales(torch.amp.GradScaler("cpu", **settings), grads)
    alone = make_scaler is torch.amp.GradScaler
    yours = pytorch if alone else _scales(make_scaler(**settings), grads)
    figure, axes = new_figure(8.0, 3.8)
    steps = range(n_steps)
    limits = (65504 / grads.abs().amax(1)).tolist()
    axes.scatter(
        steps,
        limits,
        s=5,
        color="#b9c2cc",
        label="65504 / largest gradient: the limit",
        zorder=1,
    )
    axes.step(steps, pytorch[:-1], where="post", color=TRUTH, linestyle=":", linewidth=2.4, label="GradScaler")
    if not alone:
        axes.step(steps, yours[:-1], where="post", color=YOURS, linewidth=1.6, label="yours")
    skipped = [step for step in steps if yours[step + 1] < yours[step]]
    bottom = 2.0 ** (math.floor(math.log2(min(limits))) - 2)
    axes.scatter(skipped, [bottom] * len(skipped), marker="x", s=26, color=OTHER, label="skipped", zorder=3)
    axes.set_yscale("log", base=2)
    axes.set_ylim(bottom / 2, 2.0**25.5)
    burst = _burst(n_steps)
    axes.annotate(
        "burst of large gradients",
        (burst.start, limits[burst.start]),
        xytext=(-12, 2),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=9,
        color=TRUTH,
        arrowprops={"arrowstyle": "-", "color": TRUTH, "linewidth": 0.8},
    )
    axes.set_xlabel("step")
    axes.set_ylabel("loss scale")
    axes.set_title(f"{len(skipped)} of {n_steps} steps skipped", fontsize=10, loc="left")
    axes.legend(loc="upper right", ncols=2, fontsize=9, frameon=False)
    return figure


def dtype_map(
    ops: Sequence[Op], given: Mapping[str, torch.dtype], low: torch.dtype, columns: Mapping[str, Dtypes]
) -> Figure:
    """The block op by op, and the dtype of every result in each of the columns; where they differ, the op is red.

    columns: the head of a column -> the function that gives the dtypes by the result's name.
    """
    found = {name: dtypes_of(ops, given, low) for name, dtypes_of in columns.items()}
    n_rows = len(ops)
    figure, axes = new_figure(8.0, 0.6 + 0.27 * (n_rows + 1))
    axes.set_axis_off()
    left, width = 0.56, 0.44 / len(columns)
    for column, name in enumerate(columns):
        axes.text(left + width * (column + 0.5), 0.5, name, ha="center", va="center", fontsize=9, color=TRUTH)
    for index, op in enumerate(ops):
        y = -index - 0.5
        dtypes = [column.get(op.result) for column in found.values()]
        differ = len(set(dtypes)) > 1
        text = f"{op.result} = {op.function}({', '.join(op.inputs)})"
        axes.text(0.0, y, text, va="center", fontsize=9, family="monospace", color=OTHER if differ else "black")
        for column, dtype in enumerate(dtypes):
            x = left + width * column
            colour = DTYPE_COLOURS.get(dtype, "white")
            axes.add_patch(Rectangle((x + 0.004, y - 0.42), width - 0.008, 0.84, facecolor=colour, edgecolor="none"))
            axes.text(x + width / 2, y, _short(dtype), ha="center", va="center", fontsize=9)
    by_dtype: dict[str, list[str]] = {}
    for name, dtype in given.items():
        by_dtype.setdefault(_short(dtype), []).append(name)
    # The dtype of most of them last, so that the others need not be told from it.
    *few, (most, _) = sorted(by_dtype.items(), key=lambda item: len(item[1]))
    sources = "".join(f"{', '.join(names)} {dtype}, the others " for dtype, names in few)
    axes.text(0.0, 0.5, f"given: {sources or 'all '}{most}", va="center", fontsize=9, color=TRUTH)
    axes.set_xlim(0, 1)
    axes.set_ylim(-n_rows, 1)
    return figure


def amp_memory(
    bytes_after_forward: Callable[..., int],
    break_even_rows: Callable[[Sequence[int]], int],
    widths: Sequence[int],
    measured: Mapping[bool, Mapping[int, int]] | None = None,
) -> Figure:
    """Bytes alive after the forward pass of a training step against the number of rows, in float32 and under autocast.

    measured: autocast -> {n_rows: bytes}, drawn as circles on the student's own lines.
    """
    meet = break_even_rows(widths)
    figure, axes = new_figure(8.0, 3.8)
    rows = [0, 2 * meet]
    for autocast, colour, name in ((False, OTHER, "float32"), (True, YOURS, "autocast")):
        amounts = [bytes_after_forward(widths, n, training=True, autocast=autocast) / 2**20 for n in rows]
        axes.plot(rows, amounts, color=colour, linewidth=1.8, label=f"{name}, by your formula")
        points = (measured or {}).get(autocast, {})
        if points:
            sizes = [n_bytes / 2**20 for n_bytes in points.values()]
            axes.plot(list(points), sizes, "o", color=colour, markersize=6, markerfacecolor="white", label="measured")
    axes.axvline(meet, color=TRUTH, linestyle=":", linewidth=1.4)
    axes.annotate(
        f"{meet:,} rows",
        (meet, axes.get_ylim()[0]),
        xytext=(6, 6),
        textcoords="offset points",
        color=TRUTH,
    )
    axes.set_xlabel("rows in a batch")
    axes.set_ylabel("MiB alive after the forward pass")
    axes.legend(loc="upper left", fontsize=9, frameon=False)
    return figure


def step_times(times_ms: Mapping[int, Mapping[str, float]]) -> Figure:
    """Bars of CPU time per step, a panel for each width of the model. times_ms: width -> {recipe: milliseconds}."""
    figure = LabFigure(figsize=(8.0, 2.4), dpi=DPI, layout="constrained", facecolor="white")
    for axes, (width, times) in zip(figure.subplots(1, len(times_ms), squeeze=False)[0], times_ms.items(), strict=True):
        bars = axes.barh(list(times), list(times.values()), color=YOURS, height=0.6)
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=9)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.2 * max(times.values()))
        axes.set_xlabel("ms of CPU time per step")
        axes.set_title(f"width {width}", fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _made_up_gradients(n_steps: int) -> torch.Tensor:
    """(n_steps, 16): around 2^-3 and growing slowly, with a burst a hundred times larger at 60 % of the way."""
    gen = torch.Generator().manual_seed(3)
    sizes = 2.0 ** (-3 + 2.5 * torch.arange(n_steps) / n_steps + 0.5 * torch.randn(n_steps, generator=gen))
    burst = _burst(n_steps)
    sizes[burst.start : burst.stop] *= 100
    return torch.randn(n_steps, 16, generator=gen) * sizes[:, None]


def _burst(n_steps: int) -> range:
    """The steps of the made-up training whose gradients are much larger."""
    return range(int(0.6 * n_steps), int(0.6 * n_steps) + 3)


def _scales(scaler: Any, grads: torch.Tensor) -> list[float]:
    """The scale before the first step and after each."""
    weights = torch.nn.Parameter(torch.ones(grads.shape[1]))
    optimizer = torch.optim.SGD([weights], lr=1e-3, foreach=False)
    scales = [float(scaler.get_scale())]
    for grad in grads:
        optimizer.zero_grad()
        scaler.scale(HalfPrecisionLoss.apply(weights, grad)).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(float(scaler.get_scale()))
    return scales


def _short(dtype: torch.dtype | None) -> str:
    return "?" if dtype is None else str(dtype).removeprefix("torch.")
