"""The figures of lab 10 on occupancy: what registers and block sizes leave of it, the tail of a grid, bytes in flight.

They draw what the student's functions return; no formula of occupancy stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure, new_figure

Resident = Callable[[int, int, int, Any], tuple[int, float]]
"""(threads of a block, registers of a thread, shared bytes of a block, chip) -> (blocks on an SM, occupancy)."""
Waves = Callable[[int, int, Any], tuple[int, float]]
InFlight = Callable[[int, int, int, Any], tuple[float, float]]
BLOCKS = {128: YOURS, 512: OTHER, 1024: TRUTH}
REGISTERS = {32: YOURS, 48: OTHER, 80: TRUTH}


def occupancy_steps(resident: Resident, chip: Any) -> Figure:
    """Occupancy against registers a thread, for some sizes of blocks, and against the size, for some registers."""
    figure = LabFigure(figsize=(8.4, 3.4), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, sharey=True)
    registers, sizes = range(16, 256), range(32, 1025, 32)
    for size, colour in BLOCKS.items():
        shares = [100 * resident(size, n, 0, chip)[1] for n in registers]
        left.step(registers, shares, where="mid", color=colour, linewidth=1.6, label=f"blocks of {size}")
    for n, colour in REGISTERS.items():
        shares = [100 * resident(size, n, 0, chip)[1] for size in sizes]
        right.plot(sizes, shares, ".-", color=colour, linewidth=1.2, markersize=4, label=f"{n} registers")
    left.set_xlabel("registers of a thread")
    right.set_xlabel("threads of a block")
    left.set_ylabel("occupancy, %")
    left.set_ylim(0, 108)
    right.set_xticks(range(0, 1025, 256))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=9, loc="upper right" if axes is left else "lower left")
    figure.suptitle(f"{chip.name}, no shared memory", fontsize=10, x=0.02, ha="left")
    figure.alt = (
        f"Two charts of occupancy on the {chip.name}. Against registers of a thread it falls in steps, the coarser the "
        "larger the block. Against threads of a block it is a sawtooth."
    )
    return figure


def wave_chart(waves: Waves, n_resident: int, chip: Any, n_blocks: int) -> Figure:
    """Left: the efficiency of grids of up to six waves. Right: the waves of one of n_blocks blocks, the tail in red."""
    room = n_resident * chip.n_sms
    figure = LabFigure(figsize=(8.4, 3.2), dpi=DPI, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    edges = {room * n + more for n in range(1, 6) for more in (0, 1)}
    sizes = sorted({*range(room // 8, 6 * room + 1, max(1, room // 60)), *edges})
    left.plot(sizes, [100 * waves(size, n_resident, chip)[1] for size in sizes], color=YOURS, linewidth=1.4)
    found, efficiency = waves(n_blocks, n_resident, chip)
    left.plot(n_blocks, 100 * efficiency, "o", color=OTHER, mec="white", markersize=8)
    left.set_ylim(0, 105)
    left.set_xlabel(f"blocks of the grid, {n_resident} at once on each of {chip.n_sms} SMs")
    left.set_ylabel("efficiency, %")
    filled = [min(room, max(0, n_blocks - n * room)) for n in range(int(found))]
    right.bar(range(1, len(filled) + 1), [room] * len(filled), color=SHADE, width=0.9)
    colours = [YOURS if n == room else OTHER for n in filled]
    right.bar(range(1, len(filled) + 1), filled, color=colours, width=0.9)
    right.set_xticks(range(1, len(filled) + 1))
    right.set_xlabel("wave")
    right.set_ylabel("blocks that run")
    title = f"{n_blocks:,} blocks: {found:g} {'wave' if found == 1 else 'waves'}, {100 * efficiency:.0f} %"
    right.set_title(title, loc="left", fontsize=10)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, axis="y", color="#e3e6ea", linewidth=0.8)
        axes.set_axisbelow(True)
    figure.alt = (
        f"Efficiency against the blocks of a grid on the {chip.name}: it rises to 100 % at each multiple of {room} and "
        f"falls after it. Beside it the waves of {n_blocks} blocks; the last wave has {filled[-1] if filled else 0}."
    )
    return figure


def bytes_on_their_way(
    resident: Resident, in_flight: InFlight, kernels: Mapping[str, Sequence[int]], chip: Any
) -> Figure:
    """Each kernel by its occupancy and by the bytes that an SM has in flight, beside what the memory needs.

    kernels: by name (threads of a block, registers, shared bytes, loads in flight, bytes of a load).
    """
    figure, axes = new_figure(8.0, 3.8)
    needed = chip.bytes_per_s * chip.latency_s / chip.n_sms / 1e3
    tops = [needed]
    for number, (name, (threads, registers, shared_bytes, loads, load_bytes)) in enumerate(kernels.items()):
        n_blocks, occupancy = resident(threads, registers, shared_bytes, chip)
        n_bytes, share = in_flight(n_blocks * threads, loads, load_bytes, chip)
        place = 100 * occupancy, n_bytes / 1e3
        tops.append(place[1])
        axes.plot(*place, "o", color=YOURS if share >= 1 else OTHER, markersize=9, mec="white")
        side = -1 if occupancy > 0.6 else 1
        text = f"{name}: {100 * share:.0f} %\nof the bandwidth"
        axes.annotate(
            text,
            place,
            (9 * side, 9 if share >= 1 and number % 2 else -9),
            textcoords="offset points",
            ha="right" if side < 0 else "left",
            va="center",
            fontsize=9,
        )
    axes.axhline(needed, color=TRUTH, linewidth=1.5, linestyle="--")
    axes.text(0.5, needed, f"{needed:.1f} KB keep the memory busy", color=TRUTH, fontsize=9, va="bottom")
    axes.set_xlim(0, 105)
    axes.set_ylim(0, 1.2 * max(tops))
    axes.set_xlabel("occupancy, %")
    axes.set_ylabel("bytes in flight on an SM, KB")
    axes.set_title(f"{chip.name}, {1e9 * chip.latency_s:.0f} ns", loc="left", fontsize=10)
    figure.alt = (
        f"Bytes in flight on an SM of the {chip.name} against occupancy, a point for each of {len(kernels)} kernels, "
        f"and a dashed line at {needed:.1f} KB, which the memory needs. Kernels of low occupancy lie above it."
    )
    return figure
