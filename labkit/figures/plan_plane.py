"""Lab 19: every plan as a point of memory and time, drawn as SVG so that each point says on hovering what it is."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from labkit.figures.blank import or_a_note
from labkit.figures.plan_points import (
    COLOURED_BY,
    FITS,
    FULL,
    RULE,
    WHAT_BREAKS,
    YOURS,
    Point,
    by_knob,
    near,
    point_of,
    points_of,
    unknown,
)
from labkit.plan import (
    LLAMA_8B,
    LLAMA_8B_LONG,
    LLAMA_8B_SMALL_BATCH,
    LLAMA_70B,
    MEGATRON_1T,
    MIXTRAL,
    P4D,
    SELENE,
    SIXTEEN_EXPERTS,
    Cluster,
    Model,
    Plan,
    leonardo,
)

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 50, 46
CELL = 8
"""Of plans whose points would lie in one square of so many pixels, the fastest one is shown."""
PAIRS = (
    (LLAMA_8B, leonardo(4)),
    (LLAMA_8B_LONG, leonardo(16)),
    (LLAMA_8B_SMALL_BATCH, leonardo(16)),
    (LLAMA_70B, leonardo(32)),
    (MIXTRAL, leonardo(8)),
    (SIXTEEN_EXPERTS, P4D),
    (MEGATRON_1T, SELENE),
)


@dataclass(frozen=True)
class Plane:
    """The figure: it shows itself in a notebook as SVG. alt: what it says in words.

    Plane("<svg></svg>", "no plan")
    """

    svg: str
    alt: str

    def _repr_html_(self) -> str:
        style = "background:#ffffff;color:#1f2328;border-radius:8px;padding:8px;display:inline-block;max-width:100%"
        return f'<div class="labkit-plans" style="{style}">{self.svg}</div>'

    def __repr__(self) -> str:
        return self.alt


@or_a_note
def plan_plane(
    model: Model, cluster: Cluster, yours: Plan | None = None, coloured_by: str = WHAT_BREAKS, title: str = ""
) -> Plane:
    """All plans that can be estimated: memory of a device to the right, time of a step upwards, both logarithmic.

    yours: a plan to be marked. coloured_by: `WHAT_BREAKS`, or a knob of `COLOURED_BY`.
    """
    points = points_of(model, cluster)
    mine = point_of(model, cluster, yours) if yours and not unknown(model, cluster, yours) else None
    if coloured_by != WHAT_BREAKS:
        points, legend = by_knob(points, coloured_by)
    else:
        wall = f"does not fit into {cluster.memory_gb:g} GB"
        legend = {FITS: "fits", FULL: wall, RULE: f"tensor groups beyond a node ({cluster.devices_per_node} devices)"}
    title = title or f"{model.name} on {cluster.name}: a point is a plan"
    alt = _in_words(title, points, mine, yours, cluster)
    points = near(points, cluster)
    x, y = _axes([*points, *([mine] if mine else [])])
    shown = _thinned(points, x, y)
    drawn = [
        _frame(x, y, cluster.memory_gb),
        *(_dot(point, x, y) for point in shown),
        _mark(mine, x, y) if mine else "",
        _legend(legend),
        f'<text x="{LEFT}" y="16" font-size="13" font-weight="600">{escape(title)}</text>',
    ]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="{escape(alt)}" style="max-width:100%;height:auto" font-family="sans-serif" fill="#1f2328">'
        f"{''.join(drawn)}</svg>"
    )
    return Plane(svg, alt)


def plan_explorer() -> object:
    """The plane of each of the lab's models and clusters, chosen from a menu, with a second menu for the colours.

    Without ipywidgets it is drawn once.
    """
    pairs = [(f"{model.name} on {cluster.name}", (model, cluster)) for model, cluster in PAIRS]
    if importlib.util.find_spec("ipywidgets") is None:
        return plan_plane(*PAIRS[0])
    import ipywidgets
    from IPython.display import display

    menus = {
        "pair": ipywidgets.Dropdown(options=pairs, value=PAIRS[0], description="run"),
        "coloured_by": ipywidgets.Dropdown(options=(WHAT_BREAKS, *COLOURED_BY), description="colour by"),
    }
    menus["pair"].layout.width = "26em"
    shown = ipywidgets.interactive_output(
        lambda pair, coloured_by: display(plan_plane(*pair, coloured_by=coloured_by)), menus
    )
    return ipywidgets.VBox([ipywidgets.HBox(list(menus.values())), shown])


# Drawing --------------------------------------------------------------------------------------------------------------

Scale = Callable[[float], float]


def _axes(points: Sequence[Point]) -> tuple[Scale, Scale]:
    """Pixels of a number of bytes, and of seconds, on logarithmic axes."""

    def scale(values: Iterable[float], start: float, end: float) -> Scale:
        logs = [math.log10(value) for value in values]
        low, high = min(logs), max(logs)
        room = 0.04 * (high - low) + 1e-9
        return lambda value: start + (math.log10(value) - low + room) / (high - low + 2 * room) * (end - start)

    return (
        scale((point.n_bytes for point in points), LEFT, WIDTH - RIGHT),
        scale((point.seconds for point in points), HEIGHT - BOTTOM, TOP),
    )


def _thinned(points: Sequence[Point], x: Scale, y: Scale) -> list[Point]:
    """One point of a colour in each square, the fastest. Plans that break a rule are drawn first, under the others."""
    squares: dict[tuple[int, int, str], Point] = {}
    for point in sorted(points, key=lambda point: (point.colour != RULE, -point.seconds)):
        squares[int(x(point.n_bytes) / CELL), int(y(point.seconds) / CELL), point.colour] = point
    return list(squares.values())


def _dot(point: Point, x: Scale, y: Scale) -> str:
    return (
        f'<circle cx="{x(point.n_bytes):.1f}" cy="{y(point.seconds):.1f}" r="3.2" fill="{point.colour}" '
        f'fill-opacity="0.75"><title>{escape(point.text)}</title></circle>'
    )


def _mark(mine: Point, x: Scale, y: Scale) -> str:
    at_x, at_y = x(mine.n_bytes), y(mine.seconds)
    anchor, shift = ("end", -12) if at_x > WIDTH / 2 else ("start", 12)
    return (
        f'<g><title>{escape(mine.text)}</title><circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="8" fill="none" '
        f'stroke="{YOURS}" stroke-width="2.5"/><text x="{at_x + shift:.1f}" y="{at_y + 18:.1f}" font-size="12" '
        f'font-weight="600" text-anchor="{anchor}" stroke="#ffffff" stroke-width="3" paint-order="stroke">'
        f"your plan: {mine.seconds:.3g} s, {mine.n_bytes / 1e9:.1f} GB</text></g>"
    )


def _ticks(scale: Scale, low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten whose pixels lie between low and high."""
    found = [step * 10.0**power for power in range(-4, 15) for step in (1, 2, 5)]
    inside = [value for value in found if min(low, high) <= scale(value) <= max(low, high)]
    return inside if len(inside) <= 9 else [value for value in inside if f"{value:e}"[0] == "1"]


def _frame(x: Scale, y: Scale, memory_gb: float) -> str:
    """Axes with labels, and the wall beyond which nothing fits."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<path d="M{LEFT},{TOP} V{bottom} H{right}" fill="none" stroke="#5f6b7a"/>']
    for value in _ticks(lambda gb: x(gb * 1e9), LEFT, right):
        at = x(value * 1e9)
        parts.append(f'<path d="M{at:.1f},{bottom} v4" stroke="#5f6b7a"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 16}" font-size="11" text-anchor="middle">{value:,g}</text>')
    for value in _ticks(y, TOP, bottom):
        at = y(value)
        parts.append(f'<path d="M{LEFT},{at:.1f} h-4" stroke="#5f6b7a"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{at + 4:.1f}" font-size="11" text-anchor="end">{value:,g}</text>')
    wall = x(memory_gb * 1e9)
    parts.append(f'<path d="M{wall:.1f},{TOP} V{bottom}" stroke="#1f2328" stroke-dasharray="5 4"/>')
    parts.append(f'<text x="{wall + 4:.1f}" y="{TOP + 10}" font-size="11">{memory_gb:g} GB</text>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" font-size="12" text-anchor="middle">GB that the '
                 "fullest device holds</text>")  # fmt: skip
    parts.append(f'<text transform="translate(14 {(TOP + bottom) / 2}) rotate(-90)" font-size="12" '
                 'text-anchor="middle">seconds of a step</text>')  # fmt: skip
    return "".join(parts)


def _legend(legend: dict[str, str]) -> str:
    """In one row above the points."""
    parts, at = [], LEFT + 6
    for colour, text in legend.items():
        parts.append(f'<circle cx="{at}" cy="34" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{at + 9}" y="38" font-size="11">{escape(text)}</text>')
        at += 34 + 6 * len(text)
    return "".join(parts)


def _in_words(title: str, points: Sequence[Point], mine: Point | None, yours: Plan | None, cluster: Cluster) -> str:
    fits = [point for point in points if point.fits]
    text = f"{title}. {len(points):,} plans, {len(fits):,} of which fit into {cluster.memory_gb:g} GB. "
    if fits:
        text += f"The fastest of these takes {min(point.seconds for point in fits):.3g} s a step. "
    text += f"Without a limit on memory, {min(point.seconds for point in points):.3g} s would be possible."
    if mine:
        text += f" Yours, {mine.plan}, takes {mine.seconds:.3g} s and {mine.n_bytes / 1e9:.1f} GB: {mine.verdict}."
    elif yours:
        text += " Yours breaks a rule and cannot be drawn."
    return text
