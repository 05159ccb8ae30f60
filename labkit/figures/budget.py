"""Lab 11: bytes that are kept for the backward pass: eager, compiled, and under an activation budget."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure

KIB = 2**10
AT_BUDGET = "#009e73"


def kept_at_budgets(
    eager_bytes: int,
    kept: Mapping[float, int],
    budget: float,
    limit_bytes: int | None = None,
    chosen: float | None = None,
) -> Figure:
    """Left three bars: eager, compiled, and at this budget. Right what is kept at every budget, as points.

    kept: by budget, that of 1.0 among them, which is the default. chosen: the student's budget under the limit.
    """
    figure = LabFigure(figsize=(8.0, 3.2), dpi=DPI, layout="constrained", facecolor="white")
    bars, curve = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.6))
    heights = {
        "eager": (eager_bytes, OTHER),
        "compiled": (kept[1.0], YOURS),
        f"budget {budget}": (kept[budget], AT_BUDGET),
    }
    for at, (n_bytes, color) in enumerate(heights.values()):
        bars.bar(at, n_bytes / KIB, color=color, width=0.65)
        bars.annotate(
            f"{n_bytes / KIB:.0f}", (at, n_bytes / KIB), (0, 3), textcoords="offset points", ha="center", fontsize=9
        )
    bars.set_xticks(range(len(heights)), list(heights), fontsize=9)
    bars.set_ylabel("kept for the backward pass, KiB")
    bars.set_ylim(0, 1.15 * max(eager_bytes, *kept.values()) / KIB)
    budgets = sorted(kept)
    curve.plot(budgets, [kept[one] / KIB for one in budgets], color=YOURS, marker="o", markersize=4, linewidth=1)
    curve.plot([budget], [kept[budget] / KIB], color=AT_BUDGET, marker="o", markersize=9)
    curve.axhline(eager_bytes / KIB, color=OTHER, linewidth=1)
    curve.text(0, eager_bytes / KIB, "eager", va="bottom", color=OTHER, fontsize=9)
    if limit_bytes is not None:
        curve.axhline(limit_bytes / KIB, color=TRUTH, linewidth=1, linestyle="--")
        curve.text(0, limit_bytes / KIB, "limit", va="bottom", color=TRUTH, fontsize=9)
    if chosen is not None:
        curve.axvline(chosen, color=YOURS, linewidth=0.8, linestyle=":")
        curve.set_title(f"your choice for the limit: {chosen}", loc="left", fontsize=10)
    curve.set_xlabel("activation budget")
    for axes in (bars, curve):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def budget_slider(
    eager_bytes: int, kept: Mapping[float, int], limit_bytes: int | None = None, chosen: float | None = None
) -> object:
    """`kept_at_budgets` under a slider for the budget; without ipywidgets, the figure of the chosen one."""
    start = chosen if chosen in kept else 1.0

    def draw(budget: float) -> Figure:
        return kept_at_budgets(eager_bytes, kept, budget, limit_bytes, chosen)

    if importlib.util.find_spec("ipywidgets") is None:
        return draw(start)
    import ipywidgets
    from IPython.display import display

    slider = ipywidgets.SelectionSlider(
        options=sorted(kept), value=start, description="budget", continuous_update=False, layout={"width": "480px"}
    )
    shown = ipywidgets.interactive_output(lambda budget: display(draw(budget)), {"budget": slider})
    return ipywidgets.VBox([slider, shown])
