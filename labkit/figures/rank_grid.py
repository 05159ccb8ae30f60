"""Lab 17: the ranks of a cluster as a grid, node by node, and which of them are in one group.

The groups are what the figure is given; whether they are right is not its business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, TRUTH, LabFigure

Groups = Mapping[str, Sequence[Sequence[int]]]

PALETTE = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#8da0cb", "#b3b3b3")
LETTERS = ascii_uppercase + ascii_lowercase
EXAMPLE_SHAPE = {"pipeline": 4, "data": 2, "tensor": 2}
EXAMPLE_RANK, EXAMPLE_PER_NODE = 5, 8
COLOURS = {"tensor": "#E69F00", "data": "#56B4E9", "pipeline": "#009E73"}
PER_ROW = 3


def rank_grid(groups: Groups, ranks_per_node: int, kinds: Sequence[str] = ()) -> LabFigure:
    """A panel for each kind of group: a row of squares for each node, and a colour and a letter for each group.

    groups: as `rank_groups` returns them. kinds: those to be shown; all of them without it. A rank that is in no group
    stays white, and one that is in several says so.
    """
    kinds = list(kinds) or list(groups)
    n_ranks = 1 + max((rank for kind in kinds for group in groups.get(kind, ()) for rank in group), default=0)
    n_nodes = -(-n_ranks // ranks_per_node)
    n_across = min(PER_ROW, len(kinds))
    n_down = -(-len(kinds) // n_across)
    size = (0.6 + 2.7 * n_across, 0.15 + n_down * (0.5 + 0.36 * n_nodes))
    figure = LabFigure(figsize=size, dpi=DPI, layout="constrained", facecolor="white")
    panels = figure.subplots(n_down, n_across, squeeze=False).flatten()
    for axes, kind in zip(panels, kinds):
        of_rank = members(groups.get(kind, ()))
        for rank in range(n_ranks):
            numbers = of_rank.get(rank, [])
            colour = PALETTE[numbers[0] % len(PALETTE)] if numbers else "white"
            text = "/".join(LETTERS[number % len(LETTERS)] for number in numbers)
            _square(axes, rank, ranks_per_node, colour, text)
        _frame(axes, n_nodes, ranks_per_node)
        axes.set_title(f"{kind}: {len(groups.get(kind, ()))} groups", loc="left", fontsize=10)
    for axes in panels[len(kinds) :]:
        axes.axis("off")
    descriptions = (
        f"{kind}: {len(groups.get(kind, ()))} groups, {crossing(groups.get(kind, ()), ranks_per_node)} on several nodes"
        for kind in kinds
    )
    figure.alt = f"{n_nodes} nodes of {ranks_per_node} ranks, coloured by group. " + "; ".join(descriptions)
    return figure


def grid_of_ranks() -> LabFigure:
    """The lecture's 2 nodes of 8 ranks with the places of each rank, and whom rank 5 talks to."""
    sizes = list(EXAMPLE_SHAPE.values())
    n_ranks = sizes[0] * sizes[1] * sizes[2]
    figure = LabFigure(figsize=(8.4, 2.6), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    mine = places(EXAMPLE_RANK)
    for rank in range(n_ranks):
        differs = [name for name in EXAMPLE_SHAPE if places(rank)[name] != mine[name]]
        colour = COLOURS[differs[0]] if len(differs) == 1 else "white"
        _square(axes, rank, EXAMPLE_PER_NODE, "#d9dde2" if rank == EXAMPLE_RANK else colour)
        x, y = rank % EXAMPLE_PER_NODE, -(rank // EXAMPLE_PER_NODE)
        axes.text(x, y + 0.16, str(rank), ha="center", va="center", fontsize=11, weight="bold")
        text = " ".join(f"{name[0]}{place}" for name, place in places(rank).items())
        axes.text(x, y - 0.2, text, ha="center", va="center", fontsize=8)
    _frame(axes, n_ranks // EXAMPLE_PER_NODE, EXAMPLE_PER_NODE)
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    labels = [f"same {name} group as rank {EXAMPLE_RANK}" for name in COLOURS]
    axes.legend(handles, labels, frameon=False, fontsize=9, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 0.0))
    axes.set_title("p: stage of the pipeline, d: place in the data group, t: place in the tensor group", fontsize=10)
    figure.alt = (
        "16 ranks in 2 rows of 8. Rank 5 is in one tensor group with rank 4, in one data group with rank 7, and in one "
        "pipeline with ranks 1, 9 and 13; the last two are on the other node."
    )
    return figure


def places(rank: int) -> dict[str, int]:
    """Where a rank of the lecture's example stands in each dimension, of which the last runs fastest."""
    found = {}
    for name in reversed(EXAMPLE_SHAPE):
        rank, found[name] = divmod(rank, EXAMPLE_SHAPE[name])
    return {name: found[name] for name in EXAMPLE_SHAPE}


def members(groups: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """By rank the numbers of the groups it is in."""
    found: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        for rank in group:
            found.setdefault(rank, []).append(number)
    return found


def crossing(groups: Sequence[Sequence[int]], ranks_per_node: int) -> int:
    """How many groups have ranks on more than one node."""
    return sum(len({rank // ranks_per_node for rank in group}) > 1 for group in groups)


def _square(axes: Axes, rank: int, ranks_per_node: int, colour: str, text: str = "") -> None:
    x, y = rank % ranks_per_node, -(rank // ranks_per_node)
    axes.add_patch(Rectangle((x - 0.47, y - 0.44), 0.94, 0.88, facecolor=colour, edgecolor=TRUTH, linewidth=0.6))
    axes.text(x, y, text, ha="center", va="center", fontsize=9 if len(text) < 3 else 6)


def _frame(axes: Axes, n_nodes: int, ranks_per_node: int) -> None:
    axes.set_xlim(-0.6, ranks_per_node - 0.4)
    axes.set_ylim(-n_nodes + 0.45, 0.55)
    axes.set_xticks([])
    axes.set_yticks([-node for node in range(n_nodes)], [f"node {node}" for node in range(n_nodes)], fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
