"""Lab 16: how a sharded model begins: what initialization takes on a rank, and who reads what others have saved.

Both are drawn from what the student's own functions did.
"""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure
from labkit.material.lab16_checkpoint import Recut
from labkit.material.lab16_start import Start

RANKS = ("#56B4E9", "#E69F00", "#2FBF94", "#CC79A7", "#F0E442", "#9FB3C8", "#E58B5B", "#B9A3E3")
"""All of them light enough for black words."""


def init_peaks(starts: Mapping[str, Start]) -> Figure:
    """Bars: the most bytes that a rank holds while it initializes, by way; a dark part is what it keeps."""
    ways = {name: one for name, one in starts.items() if name != "whole model"}
    whole = starts["whole model"].peak / 1e6
    figure, axes = new_figure(8.0, 1.2 + 0.5 * len(ways))
    for row, (name, one) in enumerate(ways.items()):
        axes.barh(row, one.peak / 1e6, height=0.6, color=YOURS if name == "yours" else OTHER, alpha=0.45)
        axes.barh(row, one.kept / 1e6, height=0.6, color=YOURS if name == "yours" else OTHER)
        axes.annotate(
            f"{one.peak / 1e6:.2f} MB, keeps {one.kept / 1e6:.2f}",
            (one.peak / 1e6, row),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.axvline(whole, color=TRUTH, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(ways)), list(ways))
    axes.set_ylim(len(ways) - 0.5, -0.5)
    axes.set_xlim(0, 1.45 * max(whole, *(one.peak / 1e6 for one in ways.values())))
    axes.grid(False, axis="y")
    axes.set_xlabel("most at a time on one rank, MB (dark: what stays; dashed: the whole model)")
    figure.alt = f"The whole model: {whole:.2f} MB. " + ", ".join(
        f"{name}: {one.peak / 1e6:.2f} MB at most, {one.kept / 1e6:.2f} MB stay" for name, one in ways.items()
    )
    return figure


def recut_map(recut: Recut) -> Figure:
    """Top row: the elements that each rank wrote. Below: a row for each rank that read, in the writers' colours."""
    readers = sorted({span.rank for span in recut.read})
    n_writers = len({span.rank for span in recut.written})
    figure, axes = new_figure(8.4, 1.1 + 0.42 * (1 + len(readers)))
    owner = {place: span.rank for span in recut.written for place in range(span.first, span.end)}
    for span in recut.written:
        _bar(axes, 0, span.first, span.end, span.rank, f"rank {span.rank}")
    for row, reader in enumerate(readers, 1):
        for span in (one for one in recut.read if one.rank == reader):
            for writer in sorted({owner[place] for place in range(span.first, span.end) if place in owner}):
                theirs = [place for place in range(span.first, span.end) if owner.get(place) == writer]
                _bar(axes, row, theirs[0], theirs[-1] + 1, writer, f"from {writer}")
    axes.set_yticks(
        range(1 + len(readers)), [f"written on {n_writers} ranks", *(f"read by rank {one}" for one in readers)]
    )
    axes.set_ylim(len(readers) + 0.5, -0.5)
    axes.set_xlim(0, recut.n_elements)
    axes.grid(False)
    axes.set_xlabel("element of the tensor")
    figure.alt = "Written: " + _spans(recut.written) + ". Read: " + _spans(recut.read) + "."
    return figure


def _bar(axes, row: int, first: int, end: int, writer: int, text: str) -> None:
    axes.barh(row, end - first, left=first, height=0.66, color=RANKS[writer % len(RANKS)], edgecolor="white")
    axes.text((first + end) / 2, row, text, ha="center", va="center", fontsize=8, color="black")


def _spans(spans) -> str:
    return ", ".join(f"rank {one.rank} elements {one.first} to {one.end - 1}" for one in spans)
