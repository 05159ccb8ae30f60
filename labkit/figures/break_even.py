"""The time that compiling has won or lost so far, call by call, and the call at which it has paid for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure


def break_even_curves(totals_ms: Mapping[str, Sequence[float]], eager_ms: float, at: int | None) -> Figure:
    """Seconds won against eager calls, a line for each name. at: the call from which on the first one stays ahead."""
    figure, axes = new_figure(8.0, 3.4)
    for (name, totals), color in zip(totals_ms.items(), (YOURS, OTHER, TRUTH), strict=False):
        won_s = [(eager_ms * n - total) / 1000 for n, total in enumerate(totals, 1)]
        axes.plot(range(1, len(won_s) + 1), won_s, color=color, linewidth=1.6, label=name)
    axes.axhline(0, color=TRUTH, linewidth=1)
    if at is not None:
        axes.axvline(at, color=YOURS, linewidth=1, linestyle="--")
        axes.annotate(f" call {at:,}", (at, axes.get_ylim()[0]), color=YOURS, fontsize=9, va="bottom")
    axes.set_xlabel("calls")
    axes.set_ylabel("seconds won so far")
    axes.legend(loc="lower left", frameon=False, fontsize=9)
    return figure
