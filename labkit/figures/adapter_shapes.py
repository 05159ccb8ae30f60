"""Lab 08, before its exercises: the shapes of a low-rank update, and where a prompt and a prefix enter a model.

Drawings of what is asked, from no measurement and no answer.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure, new_figure

FROZEN, TRAINED = SHADE, YOURS


def low_rank_update() -> Figure:
    """W + alpha / r B A, with B A as a product of two thin matrices: n_out = n_in = 8, r = 1, to scale."""
    figure, axes = new_figure(8.4, 2.7)
    n, r = 8.0, 1.0
    _matrix(axes, 0, 0, n, n, "W\n(n_out, n_in)\nfrozen", FROZEN, "black")
    axes.text(9.6, n / 2, r"$+\;\frac{\alpha}{r}$", ha="center", va="center", fontsize=15)
    _matrix(axes, 11.2, 0, r, n, "B", TRAINED, "white")
    _matrix(axes, 12.8, n - r, n, r, "A", TRAINED, "white")
    axes.text(11.7, -0.9, "(n_out, r)", ha="center", va="center", fontsize=9, color=YOURS)
    axes.text(16.8, n - r - 0.8, "(r, n_in)", ha="center", va="center", fontsize=9, color=YOURS)
    axes.text(22.2, n / 2, "=", ha="center", va="center", fontsize=15)
    _matrix(axes, 23.6, 0, n, n, "what the layer computes,\nnever formed while training", "white", TRUTH)
    _bare(axes, 32.5, -1.6, 8.6)
    figure.alt = (
        "The frozen matrix W, n_out by n_in, plus alpha / r times a narrow B, n_out by r, times a flat A, r by n_in. "
        "The sum is what the layer computes; it is never formed while training."
    )
    return figure


def prompt_or_prefix(n_prompt: int = 2, n_text: int = 4, n_layers: int = 3) -> Figure:
    """The values that a model computes, layer by layer and position by position, behind a prompt and a prefix."""
    figure = LabFigure(figsize=(8.4, 3.0), dpi=DPI, layout="constrained", facecolor="white")
    for axes, name in zip(figure.subplots(1, 2), ("prompt tuning", "prefix tuning")):
        prefix = name == "prefix tuning"
        for layer in range(n_layers + 1):
            for position in range(n_prompt + n_text):
                if position >= n_prompt:
                    color, ink = FROZEN, "text" if layer == 0 else ""
                elif not prefix:
                    color, ink = (TRAINED, "prompt") if layer == 0 else (FROZEN, "")
                elif layer == 0:
                    continue
                else:
                    color, ink = TRAINED, "k, v"
                _matrix(axes, position, layer, 0.9, 0.8, ink, color, "white" if color == TRAINED else "black")
        labels = ("embedding", *(f"layer {index}" for index in range(1, n_layers + 1)))
        for layer, label in enumerate(labels):
            axes.text(-0.15, layer + 0.4, label, ha="right", va="center", fontsize=8)
        axes.set_title(f"{name}: blue is trained", fontsize=10, color=OTHER if prefix else TRUTH)
        _bare(axes, n_prompt + n_text + 0.2, -0.2, n_layers + 1.2, left=-1.9)
    figure.alt = (
        f"Left, prompt tuning: {n_prompt} trained vectors stand before the embeddings of {n_text} tokens of text, and "
        f"go through all {n_layers} layers with them. Right, prefix tuning: before the text, each of the {n_layers} "
        f"layers has {n_prompt} trained keys and values of its own; the embeddings have nothing before them."
    )
    return figure


def _matrix(axes: Axes, x: float, y: float, width: float, height: float, text: str, color: str, ink: str) -> None:
    axes.add_patch(Rectangle((x, y), width, height, facecolor=color, edgecolor=TRUTH, linewidth=0.8))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8, color=ink)


def _bare(axes: Axes, right: float, bottom: float, top: float, left: float = -0.5) -> None:
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.axis("off")
