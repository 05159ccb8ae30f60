"""The figures of lab 13 on attention: which tiles each program loads, and bytes against the length of the sequence.

Kernels run in Triton's interpreter, so on a CPU only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from labkit import interpreter
from labkit.figures.canvas import OTHER, TRUTH, YOURS, new_figure
from labkit.units import in_bytes

COLORS = (OTHER, YOURS, TRUTH)
"""In the order in which lines are given: what is compared with, the student's own, the ideal."""
STYLES = ("-", "-", "--")


@contextmanager
def _loads_of_block(on_load: Callable[[tuple[int, ...], np.ndarray], None]) -> Iterator[None]:
    """Call `on_load` with the program and the values, masked lanes left out, of every load in the block."""
    from triton.runtime import interpreter as triton_interpreter

    builder = triton_interpreter.interpreter_builder
    stock, own = builder.create_masked_load, vars(builder).get("create_masked_load")

    def load(pointers, mask, *rest, **named):
        loaded = stock(pointers, mask, *rest, **named)
        values = np.asarray(loaded.data)
        lanes = np.broadcast_to(np.asarray(mask.data), values.shape)
        on_load(tuple(map(int, builder.grid_idx)), values[lanes.astype(bool)])
        return loaded

    builder.create_masked_load = load
    try:
        yield
    finally:
        if own is None:
            del builder.create_masked_load
        else:
            builder.create_masked_load = own


def loaded_keys(call: Callable[[Tensor, Tensor, Tensor], object], seq: int, d_head: int = 16) -> np.ndarray:
    """Whether the program that has a query loads a key: (seq, seq), queries by keys, for one head of float32.

    call: (q, k, v), each (1, seq, d_head) -> the result of attention.
    """
    interpreter.enable()
    # What is loaded says by its value what it is: queries hold 1, 2, ..., keys go on from there, then values.
    numbers = torch.arange(1.0, 3 * seq + 1).reshape(3, 1, seq, 1).expand(3, 1, seq, d_head).contiguous()
    queries, keys = {}, {}

    def on_load(program: tuple[int, ...], values: np.ndarray) -> None:
        found = np.unique(values)
        queries.setdefault(program, set()).update(found[(found >= 1) & (found <= seq)].astype(int) - 1)
        keys.setdefault(program, set()).update(found[(seq < found) & (found <= 2 * seq)].astype(int) - seq - 1)

    with _loads_of_block(on_load):
        call(*numbers)
    loaded = np.zeros((seq, seq), dtype=bool)
    for program, rows in queries.items():
        if rows and keys[program]:
            loaded[np.ix_(sorted(rows), sorted(keys[program]))] = True
    return loaded


def visited_tiles(
    call: Callable[[Tensor, Tensor, Tensor], object], seq: int, block_m: int, block_n: int, d_head: int = 16
) -> Figure:
    """The scores that a launch computes, one square a tile: blue where it loads the keys, with the causal diagonal.

    call: as for `loaded_keys`. Raises ValueError where no kernel loads queries and keys.
    """
    loaded = loaded_keys(call, seq, d_head)
    if not loaded.any():
        raise ValueError("no program loads queries and keys: launch your kernel on q, k and v as they are given")
    rows, columns = range(0, seq, block_m), range(0, seq, block_n)
    visited = np.array([[loaded[m : m + block_m, n : n + block_n].any() for n in columns] for m in rows])
    needed = np.array([[n < min(m + block_m, seq) for n in columns] for m in rows])
    figure, axes = new_figure(6.4, 4.6)
    for i, m in enumerate(rows):
        for j, n in enumerate(columns):
            size = (min(block_n, seq - n), min(block_m, seq - m))
            color = (YOURS if needed[i, j] else OTHER) if visited[i, j] else "none"
            axes.add_patch(_square((n, m), size, color))
    axes.plot((0, seq), (0, seq), color="black", linestyle="--", linewidth=1.5)
    axes.set_xlim(0, seq)
    axes.set_ylim(seq, 0)
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.set_xlabel(f"key, in blocks of {block_n}")
    axes.set_ylabel(f"query, in blocks of {block_m}")
    n_more = int((visited & ~needed).sum())
    more = f", {n_more} of them above the diagonal (red)" if n_more else ""
    axes.set_title(f"{int(visited.sum())} of {visited.size} tiles computed{more}", loc="left", fontsize=10)
    return figure


def _square(corner: tuple[int, int], size: tuple[int, int], color: str):
    from matplotlib.patches import Rectangle

    return Rectangle(corner, *size, facecolor=color, edgecolor="#9aa5b1", linewidth=0.8, alpha=0.85)


def bytes_against_length(lengths: Sequence[int], moved: Mapping[str, Sequence[float]]) -> Figure:
    """Bytes that programs move against the length of the sequence, both axes logarithmic; the last line is dashed.

    moved: by name, one number of bytes for each length; at most three names. Each line says its last value.
    """
    if len(moved) > len(COLORS):
        raise ValueError(f"{len(moved)} lines, where {len(COLORS)} can be told apart")
    figure, axes = new_figure(7.4, 3.8)
    for (name, values), color, style in zip(moved.items(), COLORS, STYLES):
        marker = "o" if style == "-" else None
        axes.plot(lengths, values, color=color, linestyle=style, marker=marker, linewidth=2, label=name)
        text = f"  {in_bytes(values[-1])}"
        axes.annotate(text, (lengths[-1], values[-1]), color=color, va="center", fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(list(lengths), [f"{length:,}" for length in lengths])
    low, high = (edge(value for values in moved.values() for value in values) for edge in (min, max))
    ticks = [2.0**power for power in range(10, 45, 2) if low / 2 <= 2.0**power <= 2 * high]
    axes.set_yticks(ticks, [in_bytes(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(lengths[0] * 0.9, lengths[-1] * 1.9)
    axes.set_xlabel("tokens in the sequence")
    axes.set_ylabel("bytes moved")
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    return figure
