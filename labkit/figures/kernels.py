"""The figures of lab 12: which lanes of a launch are masked, and what kernels move beside PyTorch's operations.

Kernels run in Triton's interpreter, so on a CPU only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from labkit import interpreter
from labkit.figures.canvas import OTHER, SHADE, TRUTH, YOURS, new_figure
from labkit.meters.traffic import TrafficProfile
from labkit.units import in_bytes

MANY_PROGRAMS = 12
"""More programs than that are drawn without a number on each bar."""


@dataclass(frozen=True)
class StoreLanes:
    """The lanes of one store of one program: addresses in bytes, and which of them are not masked."""

    program: int
    addresses: np.ndarray
    mask: np.ndarray
    item_bytes: int


def stored_blocks(call: Callable[[], object]) -> list[StoreLanes]:
    """Every store of the launches in `call`, in order; programs are numbered along the first axis of the grid."""
    interpreter.enable()
    from triton.runtime import interpreter as triton_interpreter

    builder, blocks = triton_interpreter.interpreter_builder, []
    stock, own = builder.create_masked_store, vars(builder).get("create_masked_store")

    def store(pointers, value, mask, *rest, **named):
        lanes = np.broadcast_to(np.asarray(mask.data), pointers.data.shape).reshape(-1)
        item_bytes = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        addresses = np.asarray(pointers.data).astype(np.int64).reshape(-1)
        blocks.append(StoreLanes(int(builder.grid_idx[0]), addresses, lanes.copy(), item_bytes))
        return stock(pointers, value, mask, *rest, **named)

    builder.create_masked_store = store
    try:
        call()
    finally:
        if own is None:
            del builder.create_masked_store
        else:
            builder.create_masked_store = own
    return blocks


def launch_map(call: Callable[[], object], n: int) -> Figure:
    """The stores of a launch on a vector of n elements: a row for each program, masked lanes in red.

    Raises ValueError where `call` launches no kernel that stores anything.
    """
    blocks = stored_blocks(call)
    if not any(block.mask.any() for block in blocks):
        raise ValueError("nothing was stored by a kernel: launch one, and let it store its block")
    start = min(int(block.addresses[block.mask].min()) for block in blocks if block.mask.any())
    end = max(n, *(int(block.addresses.max() - start) // block.item_bytes + 1 for block in blocks))
    programs = sorted({block.program for block in blocks})
    is_small = len(programs) <= MANY_PROGRAMS
    figure, axes = new_figure(8.0, 1.6 + 0.42 * min(len(programs), MANY_PROGRAMS))
    for block in blocks:
        offsets = (block.addresses - start) // block.item_bytes
        row = programs.index(block.program)
        for lanes, color in ((block.mask, YOURS), (~block.mask, OTHER)):
            for first, last in _runs(offsets[lanes]):
                axes.barh(row, last - first, left=first, color=color, height=0.7, edgecolor="white")
                if is_small and last - first > end / 25:
                    middle = (first + last) / 2
                    axes.text(middle, row, f"{last - first:,}", ha="center", va="center", color="white", fontsize=9)
    axes.axvline(n, color=TRUTH, linewidth=1.5, linestyle="--")
    axes.axvspan(n, 1.02 * end, color=SHADE, zorder=0)
    axes.set_xlim(0, 1.02 * end)
    axes.set_xlabel(f"element of the output; dashed: its end, {n:,}")
    axes.set_ylabel("program")
    shown = range(0, len(programs), 1 if is_small else len(programs) // 6)
    axes.set_yticks(list(shown), [str(programs[row]) for row in shown])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    n_masked = sum(int((~block.mask).sum()) for block in blocks)
    n_lanes = sum(block.mask.size for block in blocks)
    axes.set_title(
        f"{len(programs)} programs, {n_lanes:,} lanes: {n_lanes - n_masked:,} store (blue), {n_masked:,} masked (red)",
        loc="left",
        fontsize=10,
    )
    return figure


def traffic_bars(traffic: Mapping[str, TrafficProfile], ideal_bytes: float) -> Figure:
    """Bytes moved by each program, in times the ideal: loads, stores and atomics of a bar; dashed: the ideal.

    Each bar says its bytes, how many times the ideal they are, and how many kernels they come from on a GPU.
    """
    figure, axes = new_figure(8.4, 1.5 + 0.55 * len(traffic))
    most = max(1.0, *(one.total_bytes / ideal_bytes for one in traffic.values()))
    named = set()
    for row, profile in enumerate(traffic.values()):
        left = 0.0
        parts = ((profile.load_bytes, YOURS, 1), (profile.store_bytes, YOURS, 0.5), (profile.atomic_bytes, OTHER, 1))
        for (n_bytes, color, alpha), name in zip(parts, ("loads", "stores", "atomics")):
            if n_bytes:
                label = None if name in named else name
                named.add(name)
                width = n_bytes / ideal_bytes
                axes.barh(row, width, left=left, color=color, alpha=alpha, height=0.6, label=label)
                left += width
        n_kernels = len(profile.launches) + len(profile.operations)
        kernels = "kernel" if n_kernels == 1 else "kernels"
        text = f"  {in_bytes(profile.total_bytes)}, {left:.2f} × ideal, {n_kernels} {kernels}"
        axes.text(left, row, text, va="center", fontsize=9)
    axes.axvline(1, color=TRUTH, linewidth=1.5, linestyle="--", label=f"ideal: {in_bytes(ideal_bytes)}")
    axes.set_yticks(range(len(traffic)), list(traffic))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.75 * most)
    axes.set_xlabel("bytes to and from device memory, in times the ideal")
    axes.grid(axis="y", visible=False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    return figure


def _runs(offsets: np.ndarray) -> list[tuple[int, int]]:
    """The stretches of neighbouring numbers, each as (first, behind the last)."""
    if not offsets.size:
        return []
    ordered = np.unique(offsets)
    ends = np.flatnonzero(np.diff(ordered) > 1)
    starts = [0, *(ends + 1)]
    return [(int(ordered[a]), int(ordered[b]) + 1) for a, b in zip(starts, [*ends, ordered.size - 1])]
