"""The figures of lab 07's batches: what of a batch is padding, which tokens of a packed window see which, and how far a
shuffle buffer moves a sample.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure, new_figure

TEXTS = (YOURS, "#64b5f6")
"""Of texts that lie side by side in a row, in turn."""
PADDING = "#c4cad1"
NOT, ALLOWED, LEAK, MISSING = range(4)
Shuffle = Callable[[int, int], Iterable[int]]
"""(number of samples, buffer size) -> the samples in the order in which they leave the buffer."""


class SomeBatches(Protocol):
    """`labkit.material.lab07.Batches`."""

    @property
    def padding(self) -> float: ...

    def picture(self) -> tuple[tuple[tuple[int, ...], ...], int]: ...


def padding_player(ways: Mapping[str, SomeBatches]) -> object:
    """A batch of one way at a time under a slider; without ipywidgets, all of them in one figure."""
    if importlib.util.find_spec("ipywidgets") is None:
        return padding_pictures(ways)
    import ipywidgets
    from IPython.display import display

    slider = ipywidgets.SelectionSlider(options=list(ways), description="batches", layout={"width": "640px"})
    shown = ipywidgets.interactive_output(
        lambda name: display(padding_pictures({name: ways[name]}, _widest(ways))), {"name": slider}
    )
    return ipywidgets.VBox([slider, shown])


def padding_pictures(ways: Mapping[str, SomeBatches], widest: int | None = None) -> Figure:
    """One batch of each way: a row is a row of the batch, blue are texts, grey is padding. widest: of the axis."""
    widest = widest or _widest(ways)
    figure = LabFigure(figsize=(8.0, 0.5 + 2.1 * len(ways)), dpi=DPI, layout="constrained", facecolor="white")
    all_axes = figure.subplots(len(ways), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, batches) in zip(all_axes, ways.items(), strict=True):
        rows, width = batches.picture()
        axes.add_patch(Rectangle((0, 0), width, len(rows), facecolor=PADDING, edgecolor="none"))
        for number, row in enumerate(rows):
            for place, (start, end) in enumerate(pairwise(accumulate(row, initial=0))):
                corner, colour = (start, number + 0.1), TEXTS[place % len(TEXTS)]
                axes.add_patch(Rectangle(corner, end - start, 0.8, facecolor=colour, edgecolor="none"))
        axes.set_xlim(0, widest)
        axes.set_ylim(len(rows), 0)
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.set_title(f"{name}: {in_percent(batches.padding)} of all places are padding", loc="left", fontsize=10)
    all_axes[-1].set_xlabel("tokens")
    handles = [Patch(color=YOURS, label="texts"), Patch(color=PADDING, label="padding")]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False, fontsize=9)
    return figure


def in_percent(share: float) -> str:
    """ "86 %", "6.6 %", "0.04 %" """
    return (
        f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1g} %" if share < 0.001 else f"{100 * share:.1f} %"
    )


def _widest(ways: Mapping[str, SomeBatches]) -> int:
    return max(batches.picture()[1] for batches in ways.values())


def packed_mask(lengths: Sequence[int], cu_seqlens: Sequence[int], window: int) -> Figure:
    """Which token (row) may attend to which (column) under cu_seqlens, causally: a square for each pair of tokens.

    lengths: of the documents in the window. Red: a token of another document, or padding; hatched grey: one of the own
    document that is not allowed.
    """
    kinds = mask_kinds(lengths, cu_seqlens, window)
    # In a narrower one, matplotlib shifts the square to the left, and its label off the picture.
    figure, axes = new_figure(6.4, 4.4)
    palette = ListedColormap(["white", YOURS, OTHER, PADDING])
    axes.pcolormesh(kinds, cmap=palette, vmin=-0.5, vmax=3.5)
    for border in accumulate(lengths):
        axes.axhline(border, color=TRUTH, linewidth=0.7, linestyle="--")
        axes.axvline(border, color=TRUTH, linewidth=0.7, linestyle="--")
    axes.grid(False)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.set_xlabel("attends to this token")
    axes.set_ylabel("token")
    names = {ALLOWED: "its own document", LEAK: "leaks", MISSING: "missing"}
    present = [kind for kind in names if kind == ALLOWED or (kinds == kind).any()]
    handles = [Patch(color=palette(kind), label=names[kind]) for kind in present]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9)
    n_filled = sum(lengths)
    of_documents, of_padding = (int((part == LEAK).sum()) for part in (kinds[:n_filled], kinds[n_filled:]))
    title = f"cu_seqlens = {list(cu_seqlens)}\n{of_documents:,} leaks between documents"
    axes.set_title(title + (f", {of_padding:,} of padding" if of_padding else ""), loc="left", fontsize=10)
    return figure


def mask_kinds(lengths: Sequence[int], cu_seqlens: Sequence[int], window: int) -> np.ndarray:
    """(window, window): NOT, ALLOWED, LEAK or MISSING for each token and each that it might attend to."""
    document, segment = np.full(window, -1), np.full(window, -1)
    for of, bounds in ((document, list(accumulate(lengths, initial=0))), (segment, [int(at) for at in cu_seqlens])):
        for number, (start, end) in enumerate(pairwise(bounds)):
            of[start:end] = number
    causal = np.tri(window, dtype=bool)
    allowed = (segment[:, None] == segment[None]) & (segment[:, None] >= 0) & causal
    right = (document[:, None] == document[None]) & (document[:, None] >= 0) & causal
    kinds = np.full((window, window), NOT)
    kinds[allowed & right], kinds[allowed & ~right], kinds[right & ~allowed] = ALLOWED, LEAK, MISSING
    return kinds


def shuffle_player(shuffle: Shuffle, n: int, sizes: Sequence[int]) -> object:
    """`shuffle_places` under a slider for the size of the buffer; without ipywidgets, that of the middle one."""
    if importlib.util.find_spec("ipywidgets") is None:
        return shuffle_places(shuffle, n, sizes[len(sizes) // 2])
    import ipywidgets
    from IPython.display import display

    slider = ipywidgets.SelectionSlider(options=list(sizes), description="buffer", continuous_update=False)
    shown = ipywidgets.interactive_output(lambda size: display(shuffle_places(shuffle, n, size)), {"size": slider})
    return ipywidgets.VBox([slider, shown])


def shuffle_places(shuffle: Shuffle, n: int, size: int) -> Figure:
    """A dot for each of (at most 2,000 of) n samples: where it came, and where it stood before."""
    order = np.array(list(shuffle(n, size)))
    moved = np.abs(order - np.arange(len(order))).mean()
    figure, axes = new_figure(5.2, 4.2)
    shown = np.linspace(0, len(order) - 1, min(len(order), 2000)).astype(int)
    # A sample can leave only what holds `size` samples once it is in there.
    axes.fill_between([size, n], [0, n - size], 0, color=SHADE, linewidth=0)
    axes.scatter(order[shown], shown, s=3, color=YOURS, linewidths=0)
    axes.set_xlim(0, n)
    axes.set_ylim(0, n)
    axes.set_aspect("equal")
    axes.set_xlabel("place before")
    axes.set_ylabel("place after")
    title = f"buffer of {size:,}: moved by {moved:,.0f} places on average\n(a real shuffle: {n / 3:,.0f})"
    axes.set_title(title, loc="left", fontsize=10)
    return figure
