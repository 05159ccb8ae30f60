"""Lab 17: the tensors of the student's own MLP, each drawn as what it is on four ranks.

The words come from `labkit.material.lab17_flow`, which runs the class; how a word looks is `tensor_words`'s.
"""

from __future__ import annotations

import textwrap

from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, TRUTH, LabFigure
from labkit.figures.tensor_words import HEIGHT, MEANINGS, WIDTH, draw_word
from labkit.material.lab17_flow import NEITHER, NOTHING, REDUCED, TENSORS, MlpFlow
from labkit.material.lab17_words import Word

STEP, UPPER, LOWER, LEGEND = 1.75, 2.0, 0.6, -1.1
RIGHT = {
    **dict.fromkeys(("x", "b_out", "y"), "replicated"),
    **dict.fromkeys(("w_in", "b_in", "w_out"), "sharded"),
    REDUCED: "partial",
}
"""The word of each tensor, and of its gradient, where nothing is wrong."""


def mlp_flow(flow: MlpFlow) -> Figure:
    """Upper row: tensors; lower row: their gradients. A word that is not the right one is written under its box in red.

    flow: as `flow_of_mlp` returns it.
    """
    figure = LabFigure(figsize=(9.6, 3.7), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.axis("off")
    axes.set_xlim(-1.35, STEP * (len(TENSORS) - 1) + WIDTH + 0.3)
    axes.set_ylim(LEGEND - 0.1, UPPER + HEIGHT + 0.65)
    axes.set_aspect("equal")
    rows = ((UPPER, "tensor", flow.forward), (LOWER, "gradient", flow.backward))
    for y, name, words in rows:
        axes.text(-0.25, y + HEIGHT / 2, name, ha="right", va="center", fontsize=9, color=TRUTH)
        for number, tensor in enumerate(TENSORS):
            x, word = STEP * number, words[tensor]
            _draw(axes, x, y, word)
            if word.name != RIGHT[tensor]:
                axes.text(x + WIDTH / 2, y - 0.08, word.name, ha="center", va="top", fontsize=8.5, color=OTHER)
    for number, tensor in enumerate(TENSORS):
        name = textwrap.fill(tensor, 12)
        axes.text(STEP * number + WIDTH / 2, UPPER + HEIGHT + 0.12, name, ha="center", va="bottom", fontsize=9)
    kinds = (Word("replicated"), Word("sharded", "columns"), Word("partial"))
    for number, (word, text) in enumerate(zip(kinds, MEANINGS, strict=True)):
        x = 4.2 * number - 0.6
        draw_word(axes, x, LEGEND, word)
        axes.text(x + WIDTH + 0.15, LEGEND + HEIGHT / 2, text.replace(": ", ":\n"), va="center", fontsize=8.5)
    figure.alt = "; ".join(f"{one}: {flow.forward[one].name}, gradient {flow.backward[one].name}" for one in TENSORS)
    return figure


def _draw(axes, x: float, y: float, word: Word) -> None:
    draw_word(axes, x, y, word, "–" if word == NOTHING else "?" if word == NEITHER else "")
