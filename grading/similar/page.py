"""The pairs of a lab side by side, as one page that needs no other file and no network.

What students wrote is made harmless, as every text is (`grading/pages`), and keeps its lines.
"""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup, escape

from grading.pages import template_of
from grading.similar.pairs import Compared
from grading.similar.programs import ClassAnswers
from grading.terminal import lines_in
from labkit import exercises

MOST_PAIRS = 50
"""Of one exercise with their texts; the rest are named."""


def as_page(found: ClassAnswers, compared: list[Compared]) -> str:
    """The page's text."""
    shown = [each for each in compared if not each.honest.left_out]
    left_out = [each for each in compared if each.honest.left_out]
    template = template_of(Path(__file__).parent, "page.html.j2", marked=marked, percent="{:.0%}".format)
    return template.render(found=found, shown=shown, left_out=left_out, most=MOST_PAIRS, title=_title)


def _title(exercise: str) -> str:
    return exercises.find(exercise).title


def marked(text: str, parts: tuple[tuple[int, int], ...]) -> Markup:
    """The text with what the other has too in <mark>."""
    pieces, at = [], 0
    for start, end in sorted(parts):
        start = max(start, at)
        if end > start:
            pieces += [_plain(text[at:start]), Markup("<mark>"), _plain(text[start:end]), Markup("</mark>")]
            at = end
    return Markup("").join([*pieces, _plain(text[at:])])


def _plain(text: str) -> Markup:
    # Lines are kept as they are split: a piece may end in the middle of one.
    return Markup("\n").join(escape(" ".join(lines_in(line))) for line in text.split("\n"))
