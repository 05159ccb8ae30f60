"""Lab 14: drawings of rings before they are written: numbered chunks on their way, and links between nodes.

They are drawn from the rule in the text; no function of the student's is run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure

Place = tuple[float, float]
HELD = "#90caf9"
CORNERS = ((0.0, 0.0), (2.6, 0.0), (2.6, -2.6), (0.0, -2.6))
HALF_BOX = (0.66, 0.4)


def ring_plan(n_ranks: int = 4, n_steps: int = 2) -> Figure:
    """Who sends which chunk to whom in the first steps of a ring, and how many ranks' numbers each chunk then holds."""
    figure = LabFigure(figsize=(4.0 * n_steps, 3.9), dpi=DPI, layout="constrained", facecolor="white")
    for step, axes in enumerate(figure.subplots(1, n_steps, squeeze=False)[0]):
        _no_axes(axes, f"step {step}: rank r sends chunk r − {step}" if step else "step 0: rank r sends chunk r")
        places = [_on_circle(rank, n_ranks) for rank in range(n_ranks)]
        for rank, (x, y) in enumerate(places):
            number = (rank - step) % n_ranks
            there = places[(rank + 1) % n_ranks]
            axes.add_patch(_arrow(*_between_boxes((x, y), there), OTHER))
            middle = (0.5 * (x + there[0]) * 1.5, 0.5 * (y + there[1]) * 1.5)
            axes.annotate(
                f"chunk {number}", middle, ha="center", va="center", fontsize=9, color=OTHER, annotation_clip=False
            )
            _chunks(axes, x, y, rank, step, n_ranks)
        axes.set(xlim=(-1.75, 1.75), ylim=(-1.5, 1.5))
    figure.alt = (
        f"{n_ranks} ranks in a ring, each with its numbers in {n_ranks} chunks and an arrow to the next rank. "
        + " ".join(
            f"Step {step}: "
            + ", ".join(
                f"rank {rank} sends chunk {(rank - step) % n_ranks} to rank {(rank + 1) % n_ranks}"
                for rank in range(n_ranks)
            )
            + "."
            for step in range(n_steps)
        )
    )
    return figure


def ring_over_nodes() -> Figure:
    """A ring of 16 on 4 nodes that were filled in order, and on 4 that were dealt round-robin, crossing links red."""
    filled = [list(range(4 * node, 4 * node + 4)) for node in range(4)]
    dealt = [list(range(node, 16, 4)) for node in range(4)]
    figure = LabFigure(figsize=(8.0, 4.0), dpi=DPI, layout="constrained", facecolor="white")
    for axes, (title, nodes) in zip(figure.subplots(1, 2), (("filled in order", filled), ("round-robin", dealt))):
        _links(axes, nodes, title)
    figure.alt = (
        "A ring of 16 ranks on 4 nodes, twice. Left, each node has four neighbours of the ring, such as 0 to 3, "
        "so only the link from its last rank leaves it. Right, ranks were dealt in turn, so node 0 has 0, 4, 8 "
        "and 12, and all links lead to another node."
    )
    return figure


def crossing_links(nodes: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The links rank -> rank + 1 of the ring that leave a node."""
    node_of = {rank: number for number, ranks in enumerate(nodes) for rank in ranks}
    n = len(node_of)
    return [(rank, (rank + 1) % n) for rank in range(n) if node_of[rank] != node_of[(rank + 1) % n]]


def _chunks(axes: Axes, x: float, y: float, rank: int, step: int, n: int) -> None:
    """A rank's row of numbered chunks, filled by how many ranks' numbers are in each; the one that it sends in red."""
    width, height = 0.24, 0.26
    axes.add_patch(FancyBboxPatch((x - 0.56, y - 0.28), 1.12, 0.66, boxstyle="round,pad=0.04", fc="white", ec=TRUTH))
    axes.text(x, y + 0.25, f"rank {rank}", ha="center", va="center", fontsize=9)
    for number in range(n):
        left, sent = x + (number - n / 2) * width, number == (rank - step) % n
        filled = height * _n_in(rank, number, step, n) / n
        axes.add_patch(Rectangle((left, y - 0.2), width, filled, fc=HELD, ec="none", zorder=3))
        box = {"ec": OTHER, "lw": 1.8, "zorder": 5} if sent else {"ec": TRUTH, "lw": 0.6, "zorder": 4}
        axes.add_patch(Rectangle((left, y - 0.2), width, height, fc="none", **box))
        axes.text(left + width / 2, y - 0.2 + height / 2, str(number), ha="center", va="center", fontsize=8, zorder=6)


def _between_boxes(start: Place, end: Place) -> tuple[Place, Place]:
    """The part of the line from middle to middle that is outside of both boxes; they reach farther up than down."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    share = min(half / abs(d) for half, d in zip(HALF_BOX, (dx, dy)) if abs(d) > 1e-9)
    return (start[0] + share * dx, start[1] + share * dy), (end[0] - share * dx, end[1] - share * dy)


def _n_in(rank: int, number: int, step: int, n: int) -> int:
    """Of how many ranks the chunk holds the numbers before this step of the first half."""
    came_in = (rank - 1 - number) % n
    return came_in + 2 if came_in < step else 1


def _links(axes: Axes, nodes: Sequence[Sequence[int]], title: str) -> None:
    crossing = crossing_links(nodes)
    most = max(sum(src in ranks for src, _ in crossing) for ranks in nodes)
    _no_axes(axes, f"{title}: {most} of {len(nodes[0])} links of a node leave it")
    place = {}
    for number, ranks in enumerate(nodes):
        cx, cy = CORNERS[number]
        axes.add_patch(
            FancyBboxPatch((cx - 0.85, cy - 0.85), 1.7, 1.7, boxstyle="round,pad=0.12", fc=SHADE, ec="none", zorder=0)
        )
        for at, rank in enumerate(ranks):
            # Clockwise, so that neighbours in the ring stand beside one another.
            angle = math.pi * (0.75 - 0.5 * at)
            place[rank] = (cx + 0.8 * math.cos(angle), cy + 0.8 * math.sin(angle))
    for rank, (x, y) in place.items():
        after = (rank + 1) % len(place)
        out = (rank, after) in crossing
        axes.add_patch(_arrow((x, y), place[after], OTHER if out else YOURS, shrink=9, width=1.1, bend=0.08))
    for rank, (x, y) in place.items():
        axes.text(
            x,
            y,
            str(rank),
            ha="center",
            va="center",
            fontsize=8,
            zorder=6,
            bbox={"boxstyle": "circle,pad=0.25", "fc": "white", "ec": TRUTH, "lw": 0.8},
        )
    axes.set(xlim=(-1.3, 3.9), ylim=(-3.9, 1.3))


def _no_axes(axes: Axes, title: str) -> None:
    axes.axis("off")
    axes.set_aspect("equal")
    axes.set_title(title, loc="left", fontsize=10)


def _on_circle(rank: int, n: int) -> Place:
    """Rank 0 at the top left, the others clockwise."""
    angle = math.pi * (0.75 - 2 * rank / n)
    return 1.25 * math.cos(angle), 1.15 * math.sin(angle)


def _arrow(
    start: Place,
    end: Place,
    colour: str,
    shrink: float = 0,
    width: float = 1.4,
    bend: float = 0.0,
) -> FancyArrowPatch:
    return FancyArrowPatch(
        start,
        end,
        arrowstyle="-|>",
        mutation_scale=9,
        color=colour,
        lw=width,
        shrinkA=shrink,
        shrinkB=shrink,
        connectionstyle=f"arc3,rad={bend}",
        zorder=2,
    )
