"""Lab 20: a student's entry among the ghosts: what its peak consists of, and where it is between hours and memory."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from labkit.capstone import Entry
from labkit.figures.canvas import DPI, SHADE, TRUTH, YOURS, LabFigure
from labkit.figures.predicted_peaks import COLOURS
from labkit.spec import GiB

MINE = "yours"


def ghost_ladder(entries: Mapping[str, Entry], card_bytes: float) -> Figure:
    """Left, a bar of each entry's peak by category, cut off at two cards; right, virtual hours and peak of each.

    What fits is shaded.

    entries: by what they are called, the ghosts' levels and "yours". card_bytes: what a card holds.
    """
    figure = LabFigure(figsize=(9.6, 1.4 + 0.5 * len(entries)), dpi=DPI, layout="constrained", facecolor="white")
    bars, plane = figure.subplots(1, 2, width_ratios=(3, 2))
    widest = 2 * card_bytes / GiB
    for row, entry in enumerate(entries.values()):
        left = 0.0
        for category, colour in COLOURS.items():
            size = entry.peak_bytes.get(category, 0) / GiB
            bars.barh(row, size, left=left, height=0.62, color=colour, label=None if row else category)
            left += size
        cut = left > widest
        bars.annotate(
            f"{left:.1f} →" if cut else f"{left:.1f}",
            (min(left, widest), row),
            (-5 if cut else 5, 0),
            textcoords="offset points",
            va="center",
            ha="right" if cut else "left",
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )
    bars.axvline(card_bytes / GiB, color=TRUTH, linestyle="--", linewidth=1)
    bars.set_yticks(range(len(entries)), list(entries))
    bars.invert_yaxis()
    bars.set_xlim(0, widest)
    bars.set_xlabel("peak on one card, GiB")

    plane.axhspan(0, card_bytes / GiB, color=SHADE)
    for name, entry in entries.items():
        at = (entry.virtual_hours, entry.total_peak_bytes / GiB)
        plane.plot(*at, "o" if entry.counts else "x", color=YOURS if name == MINE else TRUTH, markersize=8)
        above = (0, -18) if name == MINE else (0, 8)
        plane.annotate(name, at, above, textcoords="offset points", ha="center", fontsize=9)
    plane.set(xscale="log", yscale="log", xlabel="virtual hours", ylabel="peak, GiB")
    ticks = (0.03, 0.1, 0.3, 1, 3)
    plane.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    plane.set_yticks((4, 8, 16, 32, 64), ["4", "8", "16", "32", "64"])
    plane.minorticks_off()
    plane.margins(x=0.25, y=0.22)
    for axes in (bars, plane):
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*bars.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    descriptions = "; ".join(
        f"{name} {entry.total_peak_bytes / GiB:.1f} GiB, most of it {entry.largest}, {entry.virtual_hours:.3g} hours"
        + ("" if entry.counts else ", does not count")
        for name, entry in entries.items()
    )
    figure.alt = f"Entries on a card of {card_bytes / GiB:.0f} GiB: {descriptions}."
    return figure
