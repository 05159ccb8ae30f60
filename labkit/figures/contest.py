"""Lab 20: the runs of a contest, and which of them are accused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, LabFigure

HONEST, ACCUSED = "#1565c0", "#c62828"


def contest(logs: Sequence[Mapping[str, Any]], accused: Mapping[str, str], floor: float) -> Figure:
    """Each run by its virtual hours and its lowest loss; who is accused has a red cross. floor: the text's entropy."""
    figure = LabFigure(figsize=(8.0, 3.4), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.subplots()
    for name, colour, marker, among in (
        ("not accused", HONEST, "o", [log for log in logs if log["run"] not in accused]),
        ("accused", ACCUSED, "X", [log for log in logs if log["run"] in accused]),
    ):
        losses = [min(trial["loss"] for trial in log["trials"]) for log in among]
        axes.scatter([log["virtual_hours"] for log in among], losses, c=colour, marker=marker, s=45, label=name)
    axes.axhline(floor, color="black", linestyle="--", linewidth=1)
    at = axes.get_yaxis_transform()
    axes.text(0.99, floor, "entropy of the text", ha="right", va="bottom", fontsize=9, transform=at)
    axes.set(xscale="log", xlabel="virtual hours (fewer are better)", ylabel="lowest loss of a trial")
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    n_accused = sum(log["run"] in accused for log in logs)
    figure.alt = (
        f"{len(logs)} runs by virtual hours and lowest loss, {n_accused} of them accused. A dashed "
        f"line marks the entropy of the text, {floor:g}."
    )
    return figure
