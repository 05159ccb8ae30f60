"""What a figure says of itself in words, for those who cannot see it and where its function has no words of its own.

It reads titles, axes, legends and notes. What the data show, and what follows from it, it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

MOST_CHARACTERS = 400


def described(figure: Figure) -> str:
    """ "not scaled: % of the gradients against log2 of the size of a gradient; at the start, late in training" """
    whole = list(dict.fromkeys(text.get_text() for text in figure.texts if _is_shown(text)))
    parts = [text for axes in figure.axes if axes.get_visible() and (text := _of_axes(axes))]
    legends = _listed(text.get_text() for legend in figure.legends for text in legend.get_texts())
    text = ". ".join(_plain(part) for part in (*whole, *parts, *([legends] if legends else [])))
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS].rsplit(" ", 1)[0].rstrip(",;:.") + " …"
    return text


def _of_axes(axes: Axes) -> str:
    notes = [*axes.texts, *(one for one in axes.get_children() if isinstance(one, Annotation))]
    texts = _listed(text.get_text() for text in dict.fromkeys(notes) if _is_shown(text))
    title = axes.get_title() or axes.get_title(loc="left")
    if not axes.axison:
        return f"{title}: {texts}" if title and texts else title or texts
    down, along = axes.get_ylabel(), axes.get_xlabel()
    lines = f"{down} against {along}" if down and along else down or along
    legend = axes.get_legend()
    named = _listed(text.get_text() for text in legend.get_texts()) if legend else ""
    return "; ".join(
        part for part in (f"{title}: {lines}" if title and lines else title or lines, named, texts) if part
    )


def _is_shown(text: Text) -> bool:
    """Of what is written into a drawing, a lone number says nothing where its place is not seen."""
    words = text.get_text().strip()
    return text.get_visible() and bool(words) and not words.isdecimal()


def _listed(texts: Iterable[str]) -> str:
    """Each once, in the order in which they were drawn."""
    return ", ".join(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


def _plain(text: str) -> str:
    """Without the signs of a formula: "$2^{24}$" is "2^24"."""
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", text)
    formula = re.compile(r"\$([^$]*)\$")
    plain = formula.sub(lambda found: re.sub(r"\\(mathdefault|mathrm|mathit|,|!|;)|[{}\\_]", "", found[1]), text)
    return " ".join(plain.split())
