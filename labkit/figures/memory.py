"""Live memory over a block of code: several runs on one axis, or one run split into categories."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.figures.canvas import TRUTH, new_figure
from labkit.meters.memory import CATEGORIES, MemoryProfile
from labkit.spec import GiB, KiB, MiB
from labkit.units import in_bytes

# Okabe and Ito's colours, told apart by every kind of colour vision.
COLORS = {
    "parameters": "#0072B2",
    "gradients": "#E69F00",
    "optimizer": "#009E73",
    "activations": "#D55E00",
    "inputs": "#999999",
    "temporaries": "#CC79A7",
}
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SYMBOLS = ("D", "s", "^")
"""One for each mark on a curve. More marks than that are a run's steps, and no symbol tells them apart."""


def memory_by_category(profile: MemoryProfile, title: str = "") -> Figure:
    """Live bytes after every operation, stacked by category, with the peak and the marks that the block set."""
    figure, axes = new_figure(8.0, 4.2)
    points = profile.timeline
    unit, size = _unit(profile.peak_bytes)
    used = [name for name in CATEGORIES if any(point.by_category[name] for point in points)] or ["inputs"]
    axes.stackplot(
        range(len(points)),
        *([point.by_category[name] / size for point in points] for name in used),
        colors=[COLORS[name] for name in used],
        labels=used,
        step="post",
        linewidth=0,
    )
    peak = profile.peak_index
    axes.annotate(
        f"peak {in_bytes(profile.peak_bytes)}\nin {points[peak].op}",
        (peak, profile.peak_bytes / size),
        (0, 6),
        textcoords="offset points",
        ha="center" if 0.2 < peak / max(len(points), 1) < 0.8 else "right" if peak > len(points) / 2 else "left",
        va="bottom",
        fontsize=9,
    )
    _marks(axes, profile)
    _label(axes, unit, len(points), profile.peak_bytes / size)
    handles, names = axes.get_legend_handles_labels()
    # In the order of the stack, top first, outside of the drawing.
    axes.legend(handles[::-1], names[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    return figure


def memory_timeline(profiles: Mapping[str, MemoryProfile], title: str = "") -> Figure:
    """Live bytes of several runs on one axis, each from 0 to 100 % of its operations; peaks in the legend.

    What the runs marked after their start is a symbol on each curve, for up to three labels.
    """
    if not profiles:
        raise ValueError("memory_timeline needs at least one profile: {name: profile}")
    figure, axes = new_figure(8.0, 4.2)
    unit, size = _unit(max(profile.peak_bytes for profile in profiles.values()))
    for (name, profile), color in zip(profiles.items(), LINES * len(profiles), strict=False):
        curve = profile.tracker.curve
        steps = [100 * index / max(len(curve) - 1, 1) for index in range(len(curve))]
        label = f"{name}: {in_bytes(profile.peak_bytes)} after {profile.peak_index} of {len(curve) - 1} operations"
        axes.plot(steps, [n_bytes / size for n_bytes in curve], color=color, linewidth=1.6, label=label)
        axes.plot(steps[profile.peak_index], profile.peak_bytes / size, "o", color=color, markersize=6)
    _symbols(axes, profiles, size)
    most = max(profile.peak_bytes for profile in profiles.values()) / size
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1.1 * most or 1)
    axes.set_xlabel("operations, in % of each run's own")
    axes.set_ylabel(f"live memory ({unit})")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    return figure


def _unit(n_bytes: int) -> tuple[str, int]:
    return next(((name, size) for name, size in (("GiB", GiB), ("MiB", MiB)) if n_bytes >= size), ("KiB", KiB))


def _symbols(axes: Axes, profiles: Mapping[str, MemoryProfile], size: int) -> None:
    marks = [(profile, label, index) for profile in profiles.values() for label, index in profile.marks if index > 0]
    labels = [*dict.fromkeys(label for _, label, _ in marks)]
    if len(labels) > len(SYMBOLS):
        return
    for label, symbol in zip(labels, SYMBOLS):
        places = [
            (100 * index / max(len(profile.tracker.curve) - 1, 1), profile.tracker.curve[index] / size)
            for profile, name, index in marks
            if name == label
        ]
        axes.plot(*zip(*places), symbol, color="black", fillstyle="none", markersize=8, linestyle="", label=label)


def _marks(axes: Axes, profile: MemoryProfile) -> None:
    for label, index in profile.marks:
        axes.axvline(index, color=TRUTH, linewidth=0.9, linestyle="--")
        axes.annotate(
            label,
            (index, 1),
            (3, -3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize=8,
            color=TRUTH,
        )


def _label(axes: Axes, unit: str, n_points: int, most: float) -> None:
    axes.set_xlim(0, max(n_points - 1, 1))
    axes.set_ylim(0, 1.25 * most or 1)
    axes.set_xlabel("operations since the start")
    axes.set_ylabel(f"live memory ({unit})")
