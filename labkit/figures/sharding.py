"""Lab 16: what a rank keeps and sends by method of sharding, and how many tokens hide what it sends.

The amounts come from the student's own functions; the machine of `tokens_that_hide` is written down here.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, TRUTH, YOURS, LabFigure, ink_like, new_figure
from labkit.material.lab16 import Trained

BytesKept = Callable[[str, int, int, int], float]
BytesSent = Callable[[str, int, int, int, int], tuple[float, float]]

TITLES = {"ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3", "hybrid": "hybrid"}
CARD_GB = 80
RANKS_PER_NODE = 8
NODES = (1, 2, 4, 8, 16, 32, 64, 128)
SIZES_B = (0.1, 0.5, 1, 3, 7.5, 13, 18, 30, 70, 180, 405)
"""Of the sliders. 18: ZeRO-1 fits from 32 ranks on; all others fit with it on 8 ranks or never."""

FLOPS_PER_S, NODE_BYTES_PER_S, GPU_BYTES_PER_S = 400e12, 50e9, 200e9
HEAD = 128
"""A model of width h has h / 128 layers of 12 h² parameters, as the models of the GPT-3 paper do within a factor 2."""
CURVES = {"ddp": "#5f6b7a", "zero1": "#E69F00", "zero3": "#0072B2", "hybrid": "#009E73"}
N_POINTS = 100
SMALLEST, LARGEST = 10**8.5, 1e12
N_HALVINGS = 40


def sharding_bars(bytes_kept: BytesKept, bytes_sent: BytesSent, params_b: float = 7.5, n_nodes: int = 8) -> Figure:
    """Left: GB that a rank keeps by method, and a line at 80. Right: GB that it sends in a step, or that leave a node.

    params_b: parameters in billions. A node has 8 ranks.
    """
    figure = LabFigure(figsize=(8.6, 3.3), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    n_params, rows = round(params_b * 1e9), range(len(TITLES))
    kept = [float(bytes_kept(method, n_params, n_nodes, RANKS_PER_NODE)) / 1e9 for method in TITLES]
    traffic = [_floats(bytes_sent(method, n_params, n_nodes, RANKS_PER_NODE, 1)) for method in TITLES]
    left.barh(rows, kept, color=[OTHER if one > CARD_GB else YOURS for one in kept], height=0.6)
    left.axvline(CARD_GB, color=TRUTH, linewidth=1, linestyle="--")
    left.set_xlim(0, 1.25 * max(*kept, CARD_GB))
    _labels(left, kept)
    left.set_title("kept on a rank, GB (dashed: 80 GB; red: does not fit)", loc="left", fontsize=10)
    sent, crossed = ([one[place] / 1e9 for one in traffic] for place in (0, 1))
    right.barh([row - 0.19 for row in rows], sent, color=YOURS, height=0.34, label="sent by a rank")
    right.barh([row + 0.19 for row in rows], crossed, color="#E69F00", height=0.34, label="leaving a node")
    right.set_xlim(0, 1.25 * max(*sent, 1e-9))
    _labels(right, sent, -0.19)
    right.set_title("in a step of one micro-batch, GB", loc="left", fontsize=10)
    right.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    for axes in (left, right):
        axes.set_yticks(rows, list(TITLES.values()))
        axes.set_ylim(len(TITLES) - 0.5, -0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, axis="x", color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
    figure.alt = "Kept on a rank: " + ", ".join(
        f"{name} {one:.3g} GB" for name, one in zip(TITLES.values(), kept, strict=True)
    )
    figure.suptitle(
        f"{params_b:g} billion parameters on {n_nodes * RANKS_PER_NODE} ranks, {RANKS_PER_NODE} in a node",
        x=0.01,
        ha="left",
        fontsize=10,
    )
    return figure


def sharding_sliders(bytes_kept: BytesKept, bytes_sent: BytesSent) -> object:
    """`sharding_bars` under a slider for the model's size and one for the ranks; without ipywidgets, the paper's."""
    first = sharding_bars(bytes_kept, bytes_sent)  # a blank answer is met here, and not under the sliders
    if importlib.util.find_spec("ipywidgets") is None:
        return first
    import ipywidgets
    from IPython.display import display

    sizes = [(f"{size:g} B", size) for size in SIZES_B]
    ranks = [(str(nodes * RANKS_PER_NODE), nodes) for nodes in NODES]
    sliders = {
        "params_b": ipywidgets.SelectionSlider(options=sizes, value=7.5, description="parameters"),
        "n_nodes": ipywidgets.SelectionSlider(options=ranks, value=8, description="ranks"),
    }
    shown = ipywidgets.interactive_output(
        lambda params_b, n_nodes: display(sharding_bars(bytes_kept, bytes_sent, params_b, n_nodes)), sliders
    )
    return ipywidgets.VBox([ipywidgets.HBox(list(sliders.values())), shown])


HELD = {"weights": "#0072B2", "gradients": "#E69F00", "states": "#D55E00"}


def held_by_stage(trained: Mapping[str, Trained]) -> Figure:
    """Stacked bars: the bytes of weights, gradients and optimizer states that a rank holds, by the way it was trained.

    Weights are the model's; what a class keeps beside them for its part is not in `Trained` and not drawn.
    """
    figure, axes = new_figure(8.0, 1.1 + 0.45 * len(trained))
    for row, one in enumerate(trained.values()):
        left = 0.0
        for part, colour in HELD.items():
            n_kb = getattr(one, part) / 1e3
            axes.barh(row, n_kb, left=left, height=0.62, color=colour, label=None if row else part)
            left += n_kb
        axes.annotate(f"{left:,.0f} kB", (left, row), (6, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(range(len(trained)), list(trained))
    axes.set_ylim(len(trained) - 0.5, -0.5)
    axes.set_xlim(0, 1.15 * max(one.weights + one.gradients + one.states for one in trained.values()) / 1e3)
    axes.grid(False, axis="y")
    axes.set_xlabel("held by a rank after the backward pass, kB")
    figure.alt = "Held by a rank: " + ", ".join(
        f"{name} {(one.weights + one.gradients + one.states) / 1e3:.0f} kB" for name, one in trained.items()
    )
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=len(HELD), frameon=False)
    return figure


def _floats(pair: tuple[float, float]) -> tuple[float, float]:
    """Of numbers of any kind, such as fractions."""
    first, second = map(float, pair)
    return first, second


def tokens_that_fit(kept_bytes: float, n_params: float) -> float:
    """Tokens on a card of 80 GB beside what is kept, if a token keeps 2 bytes for each input of each layer."""
    width = (n_params * HEAD / 12) ** (1 / 3)
    return max(CARD_GB * 1e9 - kept_bytes, 0) / (2 * width * width / HEAD)


def tokens_that_cover(sent: tuple[float, float], n_params: float) -> float:
    """Tokens that take as long to compute, with recomputation at 8 FLOPs a parameter, as the bytes to send."""
    seconds = max(sent[0] / GPU_BYTES_PER_S, sent[1] / NODE_BYTES_PER_S)
    return seconds * FLOPS_PER_S / (8 * n_params)


def tokens_that_hide(bytes_kept: BytesKept, bytes_sent: BytesSent, n_nodes: int = 8) -> Figure:
    """Against the model's size: tokens that fit on a rank (curves), and tokens that hide what it sends (flat lines)."""
    figure, axes = new_figure(8.0, 4.0)
    for method, colour in CURVES.items():

        def fit(size: float, method: str = method) -> float:
            return tokens_that_fit(float(bytes_kept(method, round(size), n_nodes, RANKS_PER_NODE)), size)

        def cover(size: float, method: str = method) -> float:
            return tokens_that_cover(_floats(bytes_sent(method, round(size), n_nodes, RANKS_PER_NODE, 1)), size)

        end = last_size(lambda size, fit=fit: fit(size) > 0)
        sizes = [SMALLEST * (end / SMALLEST) ** (k / N_POINTS) for k in range(N_POINTS)]
        # Where little is left the curve falls steeply: three points for each halving of it.
        sizes += [end * (1 - 2 ** (-k / 3)) for k in range(3, 60)]
        sizes = sorted(size for size in sizes if size >= SMALLEST)
        axes.plot(sizes, list(map(fit, sizes)), color=colour, linewidth=1.8, label=TITLES[method])
        axes.plot([SMALLEST, LARGEST], [cover(SMALLEST), cover(LARGEST)], color=colour, linewidth=1.0, linestyle="--")
        size = last_size(lambda size, fit=fit, cover=cover: fit(size) >= cover(size))
        if size < LARGEST:
            axes.plot([size], [cover(size)], "o", color=colour, markersize=6)
            axes.annotate(
                f"{size / 1e9:.3g} B",
                (size, cover(size)),
                (7, -14 if method == "hybrid" else 9),
                textcoords="offset points",
                fontsize=9,
                color=ink_like(colour),
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(300, 3e7)
    axes.set_xlabel("parameters")
    axes.set_ylabel("tokens on a rank in a step")
    axes.set_title("curves: tokens that fit; dashed: tokens that hide the traffic", loc="left", fontsize=10)
    figure.alt = "Communication dominates from these sizes on: " + ", ".join(text.get_text() for text in axes.texts)
    axes.legend(frameon=False, fontsize=9)
    return figure


def last_size(holds: Callable[[float], bool]) -> float:
    """Up to which number of parameters something holds that holds for small models, between SMALLEST and LARGEST."""
    if holds(LARGEST):
        return LARGEST
    low, high = math.log(SMALLEST), math.log(LARGEST)
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(math.exp(middle)) else (low, middle)
    return math.exp(low)


def _labels(axes: Axes, values: list[float], shift: float = 0.0) -> None:
    for row, value in enumerate(values):
        axes.annotate(f"{value:.3g}", (value, row + shift), (4, 0), textcoords="offset points", va="center", fontsize=8)
