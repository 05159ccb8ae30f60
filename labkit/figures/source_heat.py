"""A kernel's own source with what each line costs: a profiler's source view."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, OTHER, TRUTH, LabFigure
from labkit.simt import KernelProfile

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "warp instr.": ("warp_instructions",),
    "sectors": ("global_load_sectors", "global_store_sectors", "global_atomic_sectors"),
    "passes": ("shared_load_wavefronts", "shared_store_wavefronts"),
    "divergent": ("divergent_branches",),
}
"""What is shown, and the counters that it adds up."""
WIDTH = 84
"""Characters of a line that are shown."""
LINE_IN = 0.2


def source_heat(profile: KernelProfile, heat: str = "sectors") -> Figure:
    """The source by line with counts beside it; the redder a line, the larger its share of the column `heat`.

    heat: "warp instr.", "sectors" (of global memory), "passes" (over shared memory) or "divergent" (branches).
    """
    rows = profile.source.splitlines()
    first = next((i for i, text in enumerate(rows) if text.strip()), 0)
    shown = [(number + 1, text.rstrip()) for number, text in enumerate(rows) if number >= first]
    while shown and not shown[-1][1]:
        shown.pop()
    counts = {number: _counts(profile, number) for number, _ in shown}
    total = sum(one[heat] for one in counts.values())
    figure = LabFigure(figsize=(9.0, 0.75 + LINE_IN * len(shown)), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.set_xlim(0, 1)
    axes.set_ylim(len(shown), -1.2)
    axes.set_axis_off()
    ends = [0.085 * (i + 1) for i in range(len(COLUMNS))]
    for name, end in zip(COLUMNS, ends, strict=True):
        weight = "bold" if name == heat else "normal"
        axes.text(end, -0.6, name, ha="right", va="center", fontsize=8, color=TRUTH, fontweight=weight)
    for place, (number, text) in enumerate(shown):
        share = counts[number][heat] / total if total else 0
        if share:
            alpha = 0.12 + 0.6 * math.sqrt(share)
            axes.add_patch(Rectangle((0, place), 1, 1, facecolor=OTHER, alpha=alpha, edgecolor="none"))
        for name, end in zip(COLUMNS, ends, strict=True):
            if counts[number][name]:
                axes.text(end, place + 0.5, f"{counts[number][name]:,}", ha="right", va="center", fontsize=7.5)
        cut = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
        # matplotlib would read what stands between two dollars as a formula.
        line = f"{number:3} {cut}".replace("$", r"\$")
        shown_text = axes.text(ends[-1] + 0.015, place + 0.5, line, va="center", fontsize=7.5, family="monospace")
        shown_text.set_in_layout(False)
    shares = sorted(((one[heat], number) for number, one in counts.items()), reverse=True)
    hottest = f"line {shares[0][1]} has {100 * shares[0][0] / total:.0f} % of the {heat}" if total else f"no {heat}"
    axes.set_title(f"{profile.name}: {hottest}", loc="left", fontsize=10)
    figure.alt = f"The source of {profile.name} with counts by line: {hottest}, {total:,} in all."
    return figure


def _counts(profile: KernelProfile, number: int) -> dict[str, int]:
    line = profile.line(number)
    return {name: sum(line.get(counter, 0) for counter in counters) for name, counters in COLUMNS.items()}
