"""What a kernel does with its blocks, drawn before the student writes one: a mask, a fused chain, a walk of tiles.

Drawn by geometry: nothing is launched here. `program_steps` draws a kernel of the student's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from labkit.figures.canvas import OTHER, SHADE, TRUTH, YOURS, new_figure


def masked_block(n: int = 10, block: int = 4, program: int = 2) -> Figure:
    """A vector of n elements in memory, and what one program makes of its pointer: offsets, a mask, loaded lanes."""
    first = program * block
    figure, axes = _blank(8.0, 2.7, (-4.2, max(n, first + block) + 0.6), (4.6, -1.0))
    for element in range(n):
        mine = first <= element < first + block
        _box(axes, element, 0, str(element), YOURS if mine else SHADE, "white" if mine else TRUTH)
    for element in range(n, first + block):
        _box(axes, element, 0, "?", "white", OTHER, edge=OTHER)
    rows = (("memory behind x_ptr", 0), ("offs", 1.5), ("mask = offs < n", 2.5), ("tl.load(x_ptr + offs, mask)", 3.5))
    for text, y in rows:
        axes.text(-0.3, y + 0.5, text, ha="right", va="center", fontsize=9, family="monospace" if y else None)
    for lane in range(block):
        offset = first + lane
        inside = offset < n
        color = YOURS if inside else OTHER
        _box(axes, offset, 1.5, str(offset), "white", color, edge=color)
        _box(axes, offset, 2.5, str(inside), "white", color, edge=color)
        face, ink = (YOURS, "white") if inside else ("white", OTHER)
        _box(axes, offset, 3.5, f"x[{offset}]" if inside else "?", face, ink, edge=color)
    axes.annotate("x_ptr", (0, 0), (0, -0.75), ha="center", fontsize=9, arrowprops={"arrowstyle": "->", "color": TRUTH})
    axes.set_title(
        f"program {program}, the last of {-(-n // block)}; BLOCK_SIZE = {block}, n = {n}", loc="left", fontsize=10
    )
    figure.alt = (
        f"A vector of {n} elements in memory. Program {program} has the {block} offsets from {first} to "
        f"{first + block - 1}. Where an offset is less than {n}, the mask is True and the element is loaded; "
        "elsewhere the mask is False and memory is not touched."
    )
    return figure


def fused_chain(operations: Sequence[str] = ("x²", "mean", "rsqrt", "× x", "× w")) -> Figure:
    """The same chain as one kernel for each operation, and as one kernel that keeps in registers what is in between."""
    n = len(operations)
    figure, axes = _blank(8.2, 3.3, (-1.7, n + 0.3), (7.1, -0.4))
    for top, fused in ((0.0, False), (3.6, True)):
        axes.add_patch(Rectangle((-0.2, top), n + 0.2, 0.6, facecolor=SHADE, edgecolor="none"))
        axes.text(-0.3, top + 0.3, "memory", ha="right", va="center", fontsize=9)
        axes.text(-0.3, top + 2.2, "one kernel" if fused else f"{n} kernels", ha="right", va="center", fontsize=9)
        if fused:
            axes.add_patch(Rectangle((-0.05, top + 1.7), n - 0.1, 1.0, fill=False, edgecolor=YOURS, linewidth=2))
        for number, name in enumerate(operations):
            _box(axes, number + 0.05, top + 1.8, name, YOURS if fused else OTHER, "white", width=0.75, height=0.8)
            if not fused or number == 0:
                _arrow(axes, (number + 0.2, top + 0.6), (number + 0.2, top + 1.75), TRUTH)
            if not fused or number == n - 1:
                _arrow(axes, (number + 0.65, top + 1.75), (number + 0.65, top + 0.6), TRUTH)
            if fused and number:
                _arrow(axes, (number - 0.2, top + 2.2), (number + 0.05, top + 2.2), YOURS)
    axes.text(n - 0.3, 6.85, "between the operations: registers", ha="right", va="center", fontsize=9, color=YOURS)
    figure.alt = (
        f"The operations {', '.join(operations)}. Above, each is a kernel that reads from memory and writes back "
        f"to it. Below, one kernel reads once, runs all {n} with registers between them, and writes once."
    )
    return figure


def tile_walk(n_rows: int = 6, n_cols: int = 6, n_steps: int = 5, row: int = 2, col: int = 3, step: int = 2) -> Figure:
    """One tile of C and the walk along K that computes it: this step's two tiles are dark, the others pale."""
    figure, axes = _blank(7.2, 4.6, (-0.9, n_steps + n_cols + 2.2), (n_steps + n_rows + 2.0, -1.1))
    left, top = n_steps + 1.2, n_steps + 1.2
    for k in range(n_steps):
        now = YOURS if k == step else "#bbd3ef"
        for r in range(n_rows):
            _box(axes, k, top + r, "", now if r == row else "white", TRUTH)
        for c in range(n_cols):
            _box(axes, left + c, k, "", now if c == col else "white", TRUTH)
    for r in range(n_rows):
        for c in range(n_cols):
            _box(axes, left + c, top + r, "", OTHER if (r, c) == (row, col) else "white", TRUTH)
    _arrow(axes, (0.1, top + row + 0.5), (n_steps - 0.1, top + row + 0.5), TRUTH)
    _arrow(axes, (left + col + 0.5, 0.1), (left + col + 0.5, n_steps - 0.1), TRUTH)
    for text, x, y in (("A: M × K", n_steps / 2, top - 0.3), ("B: K × N", left + n_cols / 2, -0.3)):
        axes.text(x, y, text, ha="center", va="bottom", fontsize=9)
    axes.text(left + n_cols / 2, top + n_rows + 0.7, "C: M × N", ha="center", va="center", fontsize=9)
    note = f"step {step}: load both blue tiles,\nmultiply them, add to the red one,\nwhich stays in registers"
    axes.text(0, 1.6, note, fontsize=9, va="center", color=TRUTH)
    figure.alt = (
        f"Matrices A, B and C in tiles. The tile of C in row {row} and column {col} stays in registers. For it a "
        f"program walks along row {row} of A and down column {col} of B, {n_steps} steps; in step {step} it loads "
        "a tile of each, multiplies them and adds the product."
    )
    return figure


def query_walk(n_blocks: int = 6, block: int = 3, step: int = 1) -> Figure:
    """One block of queries that passes over the keys up to its own: what it holds, loads, has done, and never loads."""
    figure, axes = _blank(7.6, 4.2, (-3.4, n_blocks + 0.4), (n_blocks + 1.4, -2.6))
    for j in range(n_blocks):
        color = YOURS if j == step else ("#bbd3ef" if j <= block else "white")
        _box(axes, j, -1.5, f"K{j}", color, "white" if j == step else TRUTH)
        _box(axes, j, -2.5, f"V{j}", color, "white" if j == step else TRUTH)
    for i in range(n_blocks):
        _box(axes, -1.4, i, f"Q{i}", OTHER if i == block else "white", "white" if i == block else TRUTH)
        for j in range(n_blocks):
            mine = i == block and j <= block
            text = {step: "now", block: "mask"}.get(j, "done" if j < step else "later") if mine else ""
            color = YOURS if mine and j == step else ("#bbd3ef" if mine else (SHADE if j > i else "white"))
            _box(axes, j, i, text, color, "white" if mine and j == step else TRUTH)
    _arrow(axes, (0.1, block + 0.85), (block + 0.9, block + 0.85), TRUTH)
    axes.text(-1.6, block + 0.5, "m, ℓ, o ", ha="right", va="center", fontsize=9, color=OTHER)
    note = "scores S = Q Kᵀ: each tile exists only while its program computes it; grey tiles are never computed"
    axes.text(-3.3, n_blocks + 0.7, note, fontsize=9, color=TRUTH, va="center")
    figure.alt = (
        f"Scores as a grid of tiles, {n_blocks} tiles of queries by {n_blocks} of keys; those above the diagonal "
        f"are never computed. The program of query tile {block} holds m, l and o, and walks along its row from "
        f"key tile 0 to tile {block}, which is on the diagonal and needs the mask. Key tile {step} is multiplied "
        "now."
    )
    return figure


def backward_walks(n_blocks: int = 6, key: int = 2, query: int = 3) -> Figure:
    """The two kernels of a causal backward pass: a block of keys that queries pass by, and one of queries that keys do.

    Red is what a program has and writes, dark blue the tile it works on, pale what is to come; grey is never computed.
    """
    figure, axes = _blank(9.4, 4.4, (-2.6, 2 * n_blocks + 6.0), (n_blocks + 1.6, -3.2))
    for left, is_mine, held, passing in (
        (0.0, lambda i, j: j == key <= i, f"holds dK{key}, dV{key}", "loads Q, dO, L, D"),
        (n_blocks + 4.6, lambda i, j: i == query >= j, f"holds dQ{query}", "loads K, V"),
    ):
        of_keys = not left
        now = (key, key) if of_keys else (query, 0)
        for b in range(n_blocks):
            loaded = is_mine(query, b), is_mine(b, key)
            own = (not of_keys and b == query, of_keys and b == key)
            for place, name, mine, passes in (
                ((left - 1.4, b), f"Q{b}", own[0], of_keys and loaded[1]),
                ((left + b, -1.5), f"K{b}", own[1], not of_keys and loaded[0]),
            ):
                current = passes and b == now[0 if of_keys else 1]
                face = OTHER if mine else (YOURS if current else ("#bbd3ef" if passes else "white"))
                _box(axes, *place, name, face, "white" if mine or current else TRUTH)
            for j in range(n_blocks):
                mine = is_mine(b, j)
                face = YOURS if (b, j) == now else ("#bbd3ef" if mine else (SHADE if j > b else "white"))
                _box(axes, left + j, b, "now" if (b, j) == now else "", face, "white")
        if of_keys:
            _arrow(axes, (left + key + 0.5, key + 1.1), (left + key + 0.5, n_blocks - 0.1), TRUTH)
        else:
            _arrow(axes, (left + 1.1, query + 0.5), (left + query + 0.9, query + 0.5), TRUTH)
        what = f"keys kernel, program {key}" if of_keys else f"queries kernel, program {query}"
        axes.text(left - 1.4, -2.6, f"{what}: {held}", fontsize=10, va="center", color=OTHER)
        axes.text(left - 1.4, n_blocks + 0.6, f"in each step it {passing}", fontsize=9, va="center", color=YOURS)
    figure.alt = (
        f"The grid of tiles of scores for two backward kernels. Left, program {key} of the keys kernel holds "
        f"dK{key} and dV{key} and walks down its column from query tile {key} to {n_blocks - 1}; in each step it "
        f"loads Q, dO, L and D. Right, program {query} of the queries kernel holds dQ{query} and walks along its "
        f"row from key tile 0 to {query}; in each step it loads K and V."
    )
    return figure


def _blank(width_in: float, height_in: float, x: tuple[float, float], y: tuple[float, float]) -> tuple[Figure, Axes]:
    figure, axes = new_figure(width_in, height_in)
    axes.set_axis_off()
    axes.set_xlim(*x)
    axes.set_ylim(*y)
    return figure, axes


def _box(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    face: str,
    ink: str,
    edge: str = "#9aa5b1",
    width: float = 1.0,
    height: float = 1.0,
) -> None:
    axes.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=edge, linewidth=1))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9, color=ink)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color=color, linewidth=1.2))
