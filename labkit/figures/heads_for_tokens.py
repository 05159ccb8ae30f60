"""Lab 19: who has which heads of which tokens, before and after an all-to-all, and in which order they arrive."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, TRUTH, LabFigure
from labkit.figures.lanes import ink_on
from labkit.figures.sampler import RANK_COLORS


def heads_for_tokens(n_ranks: int = 3, heads_of_rank: int = 2, watched: int = 1) -> Figure:
    """Three panels: a tensor cut by tokens, the same cut by heads, and what rank `watched` receives, as it lies in
    memory. A cell is one head of one rank's tokens; those that end on the watched rank are framed."""
    n_heads = n_ranks * heads_of_rank
    figure = LabFigure(figsize=(9.6, 3.5), dpi=DPI, layout="constrained", facecolor="white")
    figure.alt = (
        f"{n_heads} heads as rows and the tokens of {n_ranks} ranks as columns. Before, each column has the colour of "
        f"one rank: it has all heads of its own tokens. After, each {heads_of_rank} rows have the colour of one rank: "
        f"it has these heads of all tokens. What rank {watched} receives lies in memory in this order: "
        + ", ".join(f"head {head} of rank {rank}'s tokens" for rank, head in received(n_ranks, heads_of_rank, watched))
        + "."
    )
    before, after, memory = figure.subplots(1, 3, width_ratios=(1.0, 1.0, 1.15))
    mine = range(watched * heads_of_rank, (watched + 1) * heads_of_rank)
    for axes, title in ((before, "before: a rank has its tokens"), (after, "after: a rank has its heads")):
        for head in range(n_heads):
            for part in range(n_ranks):
                owner = part if axes is before else head // heads_of_rank
                _cell(axes, part, head, owner, "")
        for part in range(n_ranks) if axes is before else [0]:
            wide = 1 if axes is before else n_ranks
            frame = (part, mine[0]), wide, heads_of_rank
            axes.add_patch(Rectangle(*frame, fc="none", ec=TRUTH, lw=2.2, zorder=4))
        axes.set_xticks([part + 0.5 for part in range(n_ranks)], [f"rank {part}'s\ntokens" for part in range(n_ranks)])
        axes.set_yticks([head + 0.5 for head in range(n_heads)], [f"head {head}" for head in range(n_heads)])
        _bare(axes, n_ranks, n_heads, title)
    pieces = received(n_ranks, heads_of_rank, watched)
    for place, (rank, head) in enumerate(pieces):
        _cell(memory, 0, place, rank, f"head {head}, rank {rank}'s tokens", width=n_ranks)
    memory.set_xticks([])
    memory.set_yticks(
        [heads_of_rank * (rank + 0.5) for rank in range(n_ranks)], [f"from\nrank {rank}" for rank in range(n_ranks)]
    )
    _bare(memory, n_ranks, len(pieces), f"rank {watched} receives, in this order")
    return figure


def received(n_ranks: int, heads_of_rank: int, rank: int) -> list[tuple[int, int]]:
    """(sender, head) of what comes to a rank, in the order in which it lies there."""
    first = rank * heads_of_rank
    return [(sender, head) for sender in range(n_ranks) for head in range(first, first + heads_of_rank)]


def _cell(axes: Axes, column: int, row: int, rank: int, text: str, width: int = 1) -> None:
    axes.add_patch(Rectangle((column, row), width, 1, fc=RANK_COLORS[rank], ec="white", lw=1))
    if text:
        axes.text(
            column + width / 2, row + 0.5, text, ha="center", va="center", fontsize=8, color=ink_on(RANK_COLORS[rank])
        )


def _bare(axes: Axes, width: int, height: int, title: str) -> None:
    axes.set(xlim=(-0.05, width + 0.05), ylim=(height + 0.05, -0.05))
    axes.set_title(title, fontsize=10)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
