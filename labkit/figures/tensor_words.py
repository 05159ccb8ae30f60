"""Lab 17: an MLP block's data flow, each tensor drawn as what it is on the ranks: replicated, sharded or partial.

Which it is comes from `labkit.material.lab17_words`, which finds it from values.
"""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, OTHER, TRUTH, LabFigure
from labkit.material.lab17_words import STAGES, Colouring, Word, words_of_block

RANKS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
COPY = "#9fb3c8"
WIDTH, HEIGHT, STEP = 1.0, 0.9, 1.75
OPERATIONS = ("norm", "", "A", "GELU", "B", "", "+ x")
"""What leads from each stage to the next; nothing where only a collective stands."""
UNKNOWN = Word("?")
FORWARD, BACKWARD = 2.1, 0.0
MEANINGS = ("replicated: a copy on each rank", "sharded: a part on each rank", "partial: a term of a sum on each rank")


def tensor_words(sequence_parallel: bool = False, yours: Colouring | None = None) -> Figure:
    """The tensors of a block above, their gradients below, and the collectives where the word changes.

    yours: words that a student has given; one that is not right stands in red under its box.
    """
    forward, backward = words_of_block(sequence_parallel)
    figure, axes = _boxes(forward, backward)
    for number, stage in enumerate(STAGES[1:], 1):
        before, x = STAGES[number - 1], STEP * number
        _collective(axes, x, FORWARD, forward[before], forward[stage])
        _collective(axes, x, BACKWARD, backward[stage], backward[before])
    figure.alt = "; ".join(f"{stage}: {_say(forward[stage])}, gradient {_say(backward[stage])}" for stage in STAGES)
    if yours is not None and yours.n_given:
        n_right = _mark(axes, FORWARD, yours.forward, forward) + _mark(axes, BACKWARD, yours.backward, backward)
        score = f"{n_right} of the {yours.n_given} words that you gave are right"
        axes.set_title(score + "; the others stand in red" * (n_right < yours.n_given), loc="left", fontsize=10)
        figure.alt = f"{score}. {figure.alt}"
    return figure


def white_boxes(given: Colouring | None = None) -> LabFigure:
    """The same boxes in white, but for those that have been given a word, right or wrong."""
    forward, backward = (
        {stage: UNKNOWN if stage not in words else _drawn_as(words[stage]) for stage in STAGES}
        for words in ((given.forward, given.backward) if given else ({}, {}))
    )
    figure, _ = _boxes(forward, backward)
    figure.alt = "The tensors of an MLP block and their gradients as white boxes: " + ", ".join(STAGES)
    if given and given.n_given:
        coloured = [f"{stage} {word}" for stage, word in given.forward.items()]
        coloured += [f"gradient of {stage} {word}" for stage, word in given.backward.items()]
        figure.alt += ". Coloured so far: " + ", ".join(coloured)
    return figure


def _drawn_as(word: str) -> Word:
    return Word(word, "columns" if word == "sharded" else "")


def _mark(axes: Axes, y: float, given: Mapping[str, str], right: Mapping[str, Word]) -> int:
    """Write each wrong word under its box, and return how many are right."""
    wrong = {stage: word for stage, word in given.items() if word != right[stage].name}
    for stage, word in wrong.items():
        x = STEP * STAGES.index(stage) + WIDTH / 2
        # Below the names of the collectives, which stand between the boxes.
        axes.text(x, y - 0.33, f"not {word}", ha="center", va="top", fontsize=8, color=OTHER)
    return len(given) - len(wrong)


def _boxes(forward: Mapping[str, Word], backward: Mapping[str, Word]) -> tuple[LabFigure, Axes]:
    """Both rows with their words, arrows and legend."""
    figure = LabFigure(figsize=(9.6, 3.9), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.axis("off")
    axes.set_xlim(-1.35, STEP * (len(STAGES) - 1) + WIDTH + 0.1)
    axes.set_ylim(-1.6, 3.45)
    axes.set_aspect("equal")
    for y, name in ((FORWARD, "forward"), (BACKWARD, "backward\n(gradients)")):
        axes.text(-0.25, y + HEIGHT / 2, name, ha="right", va="center", fontsize=9, color=TRUTH)
    for number, stage in enumerate(STAGES):
        x = STEP * number
        for y, words in ((FORWARD, forward), (BACKWARD, backward)):
            draw_word(axes, x, y, words[stage])
        axes.text(x + WIDTH / 2, FORWARD + HEIGHT + 0.12, stage, ha="center", va="bottom", fontsize=9)
        if number:
            _arrow(axes, x - STEP + WIDTH, x, FORWARD, OPERATIONS[number - 1])
            _arrow(axes, x, x - STEP + WIDTH, BACKWARD, "")
    _legend(axes)
    return figure, axes


def draw_word(axes: Axes, x: float, y: float, word: Word, sign: str = "?") -> None:
    """A box that is one piece, four pieces side by side or one above the other, four sheets; or white, with a sign."""
    n = len(RANKS)
    edge = {"edgecolor": "white", "linewidth": 1.0}
    if word.name == "replicated":
        axes.add_patch(Rectangle((x, y), WIDTH, HEIGHT, facecolor=COPY, **edge))
    elif word.name == "partial":
        for rank, colour in enumerate(RANKS):
            off = 0.09 * (n - 1 - rank)
            size = (WIDTH - 0.09 * (n - 1), HEIGHT - 0.09 * (n - 1))
            axes.add_patch(Rectangle((x + off, y + off), *size, facecolor=colour, **edge))
        axes.text(x + size[0] / 2, y + size[1] / 2, "+", ha="center", va="center", fontsize=13, color="white")
    elif word.name == "sharded":
        for rank, colour in enumerate(RANKS):
            if word.along == "columns":
                place = (x + rank * WIDTH / n, y), WIDTH / n, HEIGHT
            else:
                place = (x, y + (n - 1 - rank) * HEIGHT / n), WIDTH, HEIGHT / n
            axes.add_patch(Rectangle(*place, facecolor=colour, **edge))
    else:
        axes.add_patch(Rectangle((x, y), WIDTH, HEIGHT, facecolor="white", edgecolor=TRUTH, linewidth=1.2))
        axes.text(x + WIDTH / 2, y + HEIGHT / 2, sign, ha="center", va="center", fontsize=11, color=TRUTH)


def _arrow(axes: Axes, start: float, end: float, y: float, label: str) -> None:
    gap = 0.06 if end > start else -0.06
    middle = y + HEIGHT / 2
    axes.annotate(
        "",
        (end - gap, middle),
        (start + gap, middle),
        arrowprops={"arrowstyle": "-|>", "color": TRUTH, "shrinkA": 0, "shrinkB": 0, "linewidth": 1},
    )
    axes.text((start + end) / 2, middle + 0.1, label, ha="center", va="bottom", fontsize=8, color=TRUTH)


def collective_between(before: Word, after: Word) -> str:
    """The collective that makes one word of the other; empty where none is needed."""
    changes = {
        ("partial", "replicated"): "all-reduce",
        ("partial", "sharded"): "reduce-\nscatter",
        ("sharded", "replicated"): "all-\ngather",
    }
    return changes.get((before.name, after.name), "")


def _collective(axes: Axes, x: float, y: float, before: Word, after: Word) -> None:
    # A product turns sharded columns into terms and a copy into columns: only the places without an operation send.
    if (name := collective_between(before, after)) and not _is_product(x):
        axes.text(
            x - (STEP - WIDTH) / 2, y - 0.12, name, ha="center", va="top", fontsize=9, color=OTHER, fontweight="bold"
        )


def _is_product(x: float) -> bool:
    return bool(OPERATIONS[round(x / STEP) - 1])


def _legend(axes: Axes) -> None:
    for number, (word, text) in enumerate(
        zip((Word("replicated"), Word("sharded", "columns"), Word("partial")), MEANINGS, strict=True)
    ):
        x = 4.45 * number - 0.6
        draw_word(axes, x, -1.5, word)
        axes.text(x + WIDTH + 0.15, -1.5 + HEIGHT / 2, text.replace(": ", ":\n"), va="center", fontsize=8.5)


def _say(word: Word) -> str:
    return word.name + (f" along its {word.along}" if word.along else "")
