"""The pairs of a lab side by side, as one page that needs no other file and no network.

Every text of a student's is escaped by the template engine and shown without characters that steer a terminal or turn
the direction of writing.
"""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from grading.similar.pairs import Compared
from grading.similar.programs import ClassAnswers
from grading.terminal import lines_in, one_line

MOST_PAIRS = 50
"""Of one exercise with their texts; the rest are named."""


def as_page(found: ClassAnswers, compared: list[Compared]) -> str:
    """The page's text."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = marked
    environment.filters["line"] = one_line
    environment.filters["percent"] = lambda share: f"{share:.0%}"
    shown = [each for each in compared if not each.honest.left_out]
    left_out = [each for each in compared if each.honest.left_out]
    template = environment.get_template("page.html.j2")
    return template.render(found=found, shown=shown, left_out=left_out, most=MOST_PAIRS)


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
