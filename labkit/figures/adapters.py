"""The figures of lab 08: what each method of fine-tuning keeps, what it learns, and what its bytes buy.

They draw numbers that the notebook has measured; no model is built or trained here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from labkit.figures.canvas import DPI, LabFigure, new_figure
from labkit.spec import GiB

# Okabe and Ito's colours, told apart by every kind of colour vision, and a marker each.
STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D"), ("#CC79A7", "^"), ("#E69F00", "v"), ("#5f6b7a", "x"))
CATEGORY_COLORS = {"weights": "#b0bec5", "gradients": "#E69F00", "optimizer": "#0072B2"}


def bytes_by_method(methods: Mapping[str, Mapping[str, float]], n_trainable: Mapping[str, int]) -> Figure:
    """What is kept for training: bytes of weights, gradients and optimizer states of each method.

    methods: method -> {"weights": bytes, "gradients": bytes, "optimizer": bytes}; n_trainable: method -> parameters
    that train. Left: all bytes, stacked. Right: gradients and optimizer states alone, on a logarithmic axis.
    """
    names = list(methods)
    figure = LabFigure(figsize=(8.4, 1.6 + 0.42 * len(names)), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(5, 4))
    starts = [0.0] * len(names)
    for category, color in CATEGORY_COLORS.items():
        widths = [methods[name][category] / GiB for name in names]
        left.barh(names, widths, left=starts, color=color, label=category, height=0.62)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    for row, (name, total) in enumerate(zip(names, starts, strict=True)):
        left.annotate(_both(total * GiB), (total, row), (4, 0), textcoords="offset points", va="center", fontsize=8)
        extra = methods[name]["gradients"] + methods[name]["optimizer"]
        right.plot([extra], [row], "o", color=CATEGORY_COLORS["optimizer"])
        text = f"{_both(extra)}\n{n_trainable[name]:,} train"
        # To the inner side, so that the largest dot keeps its label on the page.
        inner = extra > 0.2 * max(m["gradients"] + m["optimizer"] for m in methods.values())
        right.annotate(
            text,
            (extra, row),
            (-7 if inner else 7, 0),
            textcoords="offset points",
            va="center",
            ha="right" if inner else "left",
            fontsize=8,
        )
    left.invert_yaxis()
    left.set_xlim(0, 1.6 * max(starts))
    left.set_xlabel("all that is kept, GiB")
    left.legend(frameon=False, loc="lower right", fontsize=8)
    right.set_xscale("log")
    low, high = right.get_xlim()
    right.set_xlim(low / 2, high * 2)
    right.set_xlabel("gradients and states, bytes")
    _unboxed(left, right)
    left.grid(False, axis="y")
    return figure


def code_usage(codebook: torch.Tensor, weight: torch.Tensor, block: int = 64) -> Figure:
    """Where the codes lie among the weights of a matrix, and how often each is the nearest one.

    Left: the weights over the largest of their block, with a stroke for each code. Right: the share of the weights
    that each code takes, beside 16 evenly spaced codes.
    """
    ratios = weight.detach().flatten()
    ratios = ratios[: len(ratios) // block * block].view(-1, block)
    ratios = (ratios / ratios.abs().amax(1, keepdim=True).clamp_min(1e-30)).flatten()
    figure = LabFigure(figsize=(8.4, 3.4), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    heights, edges = torch.histogram(ratios.cpu().float(), bins=80, range=(-1.0, 1.0))
    left.stairs((heights / len(ratios)).tolist(), edges.tolist(), fill=True, color="#b0bec5")
    for code in codebook.tolist():
        left.axvline(code, color=STYLES[0][0], linewidth=1)
    left.set_xlabel("weight / largest magnitude of its block")
    left.set_ylabel("share of the weights")
    for axes in (left, right):
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    for name, codes, (color, _), shift in (
        ("your 16 codes", codebook, STYLES[0], -0.2),
        ("16 evenly spaced", torch.linspace(-1, 1, 16), STYLES[1], 0.2),
    ):
        nearest = torch.bucketize(ratios, ((codes[1:] + codes[:-1]) / 2).to(ratios))
        share = torch.bincount(nearest, minlength=len(codes)) / len(ratios)
        right.bar([k + shift for k in range(len(codes))], share.tolist(), width=0.4, color=color, label=name)
    right.set_xticks(range(0, len(codebook), 3))
    right.set_ylabel("share of the weights")
    right.set_xlabel("code, from the lowest to the highest")
    right.legend(frameon=False, fontsize=8)
    _unboxed(left, right)
    return figure


def update_spectrum(updates: Mapping[str, torch.Tensor]) -> Figure:
    """The singular values of what each method added to the same weight, the largest first.

    updates: method -> (n_out, n_in). Left: the values themselves. Right: the share of the squared norm of the update
    that its first k values hold.
    """
    figure = LabFigure(figsize=(8.4, 3.6), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    floor = 1e-6 * max(float(torch.linalg.svdvals(update.float())[0]) for update in updates.values())
    for (name, update), (color, marker) in zip(updates.items(), STYLES):
        values = torch.linalg.svdvals(update.float())
        shown = values[values > floor]
        count = range(1, len(shown) + 1)
        left.plot(count, shown, color=color, marker=marker, markersize=3.5, linewidth=1.2, label=name)
        share = (shown.square().cumsum(0) / values.square().sum()).tolist()
        right.plot(count, share, color=color, marker=marker, markersize=3.5, linewidth=1.2)
    left.set_yscale("log")
    left.set_xlabel("index of the singular value")
    left.set_ylabel("singular value of the update")
    left.legend(frameon=False, fontsize=8)
    right.set_ylim(0, 1.05)
    right.set_xlabel("first k singular values")
    right.set_ylabel("share of the update's squared norm")
    _unboxed(left, right)
    return figure


def loss_at_equal_bytes(
    results: Mapping[str, Sequence[tuple[float, float]]], floor: float | None = None, before: float | None = None
) -> Figure:
    """Test loss against the bytes of what trains, its gradients and its optimizer states, for each method.

    results: method -> [(bytes, loss), ...]. before: the loss of the model as it was, drawn dotted. floor: a loss that
    nobody can beat, drawn dashed.
    """
    figure, axes = new_figure(8.0, 4.0)
    for (name, points), (color, marker) in zip(results.items(), STYLES):
        sizes, losses = zip(*sorted(points), strict=True)
        axes.plot(sizes, losses, color=color, marker=marker, markersize=6, linewidth=1.6, label=name)
    if before is not None:
        axes.axhline(before, color="#5f6b7a", linewidth=1.2, linestyle=":", label="before training")
    if floor is not None:
        axes.axhline(floor, color="#5f6b7a", linewidth=1, linestyle="--", label="smallest possible")
    axes.set_yscale("log")
    axes.set_yticks((0.5, 1, 2, 5, 10))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1024:g} KiB")
    axes.tick_params(axis="x", labelrotation=30)
    axes.set_xlabel("trainable parameters, their gradients and optimizer states")
    axes.set_ylabel("test loss, nats per token")
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def _both(n_bytes: float) -> str:
    """An amount in GB and GiB, or in MB and MiB where it is small."""
    if n_bytes >= 10**9:
        return f"{n_bytes / 10**9:.2f} GB = {n_bytes / 2**30:.2f} GiB"
    return f"{n_bytes / 10**6:.1f} MB = {n_bytes / 2**20:.1f} MiB"


def _unboxed(*many: Axes) -> None:
    for axes in many:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
