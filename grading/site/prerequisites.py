"""A drawing of which lab needs which, as SVG: a row for each track, an arrow to each lab from those that it needs.

The table beside it says the same in words.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from labkit.labs import Lab

BOX_W, BOX_H, GAP_X, GAP_Y = 190, 52, 40, 22
EDGE = 8


def drawing(labs: Sequence[Lab]) -> str:
    """The SVG, in one block of HTML without empty lines."""
    places = _places(labs)
    width = 2 * EDGE + max(column for column, _ in places.values()) * (BOX_W + GAP_X) + BOX_W
    height = 2 * EDGE + max(row for _, row in places.values()) * (BOX_H + GAP_Y) + BOX_H
    needs = "; ".join(f"lab {lab.id} needs {' and '.join(lab.needs)}" for lab in labs if lab.needs)
    parts = [
        f'<svg class="prerequisites" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-label="Which lab needs which: {html.escape(needs)}.">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8"/></marker></defs>',
        *(_arrow(places[need], places[lab.id]) for lab in labs for need in lab.needs if need in places),
        *(_box(lab, places[lab.id]) for lab in labs),
        "</svg>",
    ]
    return "\n".join(parts)


def _places(labs: Sequence[Lab]) -> dict[str, tuple[int, int]]:
    """(column, row) of each lab: right of all that it needs, as near to their rows as there is room."""
    places: dict[str, tuple[int, int]] = {}
    taken: set[tuple[int, int]] = set()
    joined = {need for lab in labs for need in lab.needs}
    linked = [lab for lab in labs if lab.needs or lab.id in joined]
    alone = [lab for lab in labs if lab not in linked]
    for lab in linked:
        needs = [places[need] for need in lab.needs if need in places]
        column = 1 + max((column for column, _ in needs), default=-1)
        row = min((row for _, row in needs), default=0)
        while (column, row) in taken or (not needs and any((later, row) in taken for later in range(4))):
            row += 1
        places[lab.id] = (column, row)
        taken.add((column, row))
    below = 1 + max((row for _, row in taken), default=-1)
    for number, lab in enumerate(alone):
        places[lab.id] = (number % 3, below + number // 3)
    return places


def _corner(place: tuple[int, int]) -> tuple[int, int]:
    column, row = place
    return EDGE + column * (BOX_W + GAP_X), EDGE + row * (BOX_H + GAP_Y)


def _box(lab: Lab, place: tuple[int, int]) -> str:
    x, y = _corner(place)
    first, rest = _two_lines(f"{lab.id} {lab.title}")
    lines = f'<tspan x="{x + 10}" dy="{-2 if rest else 7}">{html.escape(first)}</tspan>'
    lines += f'<tspan x="{x + 10}" dy="17">{html.escape(rest)}</tspan>' if rest else ""
    dashed = "" if lab.stands else ' class="planned"'
    middle = y + BOX_H // 2 - (2 if rest else 3)
    box = f'<rect x="{x}" y="{y}" width="{BOX_W}" height="{BOX_H}" rx="6"{dashed}/>'
    return f'{box}<text x="{x + 10}" y="{middle}">{lines}</text>'


def _two_lines(text: str, most: int = 24) -> tuple[str, str]:
    words, first = text.split(), ""
    while words and len(first) + len(words[0]) < most:
        first = f"{first} {words.pop(0)}".strip()
    return first, " ".join(words)


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x0, y0), (x1, y1) = _corner(start), _corner(end)
    x0, y0, y1 = x0 + BOX_W, y0 + BOX_H // 2, y1 + BOX_H // 2
    bend = max(20, (x1 - x0) // 2)
    return f'<path d="M{x0},{y0} C{x0 + bend},{y0} {x1 - bend},{y1} {x1},{y1}" marker-end="url(#tip)"/>'
