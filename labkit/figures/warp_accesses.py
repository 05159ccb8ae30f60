"""What one access of a warp touches: sectors of global memory, banks of shared memory, with the number of each lane.

Sectors and passes are counted by the functions that count them when a kernel is executed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from labkit.figures.canvas import DPI, OTHER, SHADE, TRUTH, YOURS, LabFigure
from labkit.figures.sliders import with_sliders
from labkit.simt import KernelProfile, WarpAccess
from labkit.simt.counters import sectors, wavefronts
from labkit.simt.lanes import WARP, Lanes, Mask

ROW_BYTES, SECTOR, WORD = 128, 32, 4
LIT = "#90caf9"
MOST_ROWS = 32
STRIDES, OFFSETS, SIZES = (1, 2, 3, 4, 8, 16, 32), tuple(range(9)), (1, 2, 4, 8, 16)


def warp_player(stride: int = 1, offset: int = 0, element_bytes: int = 4) -> object:
    """`warp_sectors` under sliders for the stride, the offset and the size of an element."""
    sliders = {
        "stride": ("stride", STRIDES, stride),
        "offset": ("offset", OFFSETS, offset),
        "element_bytes": ("bytes each", SIZES, element_bytes),
    }
    return with_sliders(warp_sectors, sliders)


def warp_sectors(stride: int = 1, offset: int = 0, element_bytes: int = 4) -> Figure:
    """The 32 lanes of a warp over memory, where lane i reads element offset + stride · i: moved sectors, lit."""
    places = [element_bytes * (offset + stride * lane) for lane in range(WARP)]
    index = " + ".join([*([str(offset)] if offset else []), "i" if stride == 1 else f"{stride} · i"])
    return _global(f"lane i reads element {index}, {element_bytes} bytes each", places, element_bytes, element_bytes)


def address_player(profile: KernelProfile) -> object:
    """`lane_addresses` under a slider for the instruction."""
    kept = range(len(_accesses(profile)))
    return with_sliders(lambda number: lane_addresses(profile, number), {"number": ("access", kept, 0)})


def lane_addresses(profile: KernelProfile, number: int = 0) -> Figure:
    """Which lane touches which bytes at one instruction of a launch with `watch=`. number: of the access, from 0 on."""
    one = _accesses(profile)[number]
    verb = {"load": "reads", "store": "writes"}[one.kind]
    text = profile.text_of(one.line)
    title = (
        f"line {one.line}: {text if len(text) < 76 else text[:75] + '…'}\n{one.name}, {verb} {one.size} bytes a lane"
    )
    if one.space == "global":
        return _global(title, one.places, one.size, one.element, one.start)
    return _shared(title, one)


def _accesses(profile: KernelProfile) -> tuple[WarpAccess, ...]:
    if not profile.accesses:
        raise ValueError(
            "nothing was noted of this launch: give it watch=(block, warp), of a warp that reads or writes"
        )
    return profile.accesses


def _as_lanes(places: Sequence[int | None]) -> tuple[np.ndarray, Mask]:
    lanes = Lanes((1, 1, 1), (WARP, 1, 1), 0, 1)
    active = np.array([[place is not None for place in places]])
    return np.array([[place or 0 for place in places]], np.int64), Mask(lanes, active)


def _global(title: str, places: Sequence[int | None], size: int, element: int, start: int = 0) -> Figure:
    """Rows of 128 bytes of memory, of which each that is touched is drawn."""
    at, mask = _as_lanes([None if place is None else place + start % ROW_BYTES for place in places])
    n_sectors = sectors(at, mask)
    taking_part = [(lane, int(at[0, lane])) for lane in range(WARP) if places[lane] is not None]
    rows = sorted(
        {byte // ROW_BYTES for _, byte in taking_part} | {(byte + size - 1) // ROW_BYTES for _, byte in taking_part}
    )
    shown = {row: line for line, row in enumerate(rows[:MOST_ROWS])}
    figure, axes = _empty(len(shown))
    lit = {(byte + i) // SECTOR for _, byte in taking_part for i in range(0, size, min(size, SECTOR))}
    for row, line in shown.items():
        for sector in range(ROW_BYTES // SECTOR):
            colour = LIT if row * ROW_BYTES // SECTOR + sector in lit else SHADE
            axes.add_patch(Rectangle((sector * SECTOR, line), SECTOR, 0.86, facecolor=colour, edgecolor="white", lw=2))
        first = (row * ROW_BYTES - start % ROW_BYTES) // element
        axes.text(-1, line + 0.45, f"{max(first, 0):,}", ha="right", va="center", fontsize=7, color=TRUTH)
    for lane, byte in taking_part:
        if byte // ROW_BYTES in shown:
            _lane(axes, byte % ROW_BYTES, shown[byte // ROW_BYTES], size, lane, YOURS)
    asked = len({byte + i for _, byte in taking_part for i in range(size)})
    moved = SECTOR * n_sectors
    more = f", the first {MOST_ROWS} of {len(rows)} rows" if len(rows) > MOST_ROWS else ""
    plural = "sector" if n_sectors == 1 else "sectors"
    found = (
        f"{n_sectors} {plural}: {moved:,} bytes moved, {asked} of them asked for ({100 * asked / max(moved, 1):.0f} %)"
    )
    axes.set_title(f"{title}\n{found}{more}", loc="left", fontsize=9)
    axes.set_xlabel("a row: 128 bytes, four sectors; its first element at the left; white numbers: lanes", fontsize=8)
    figure.alt = f"A warp's access to memory. {title}. {found}."
    return figure


def _shared(title: str, one: WarpAccess) -> Figure:
    """Rows of 32 words of shared memory, of which each that is touched is drawn."""
    at, mask = _as_lanes([None if place is None else place + one.start for place in one.places])
    passes, conflicts = wavefronts(at, one.size, mask)
    taking_part = [(lane, int(at[0, lane])) for lane in one.active]
    rows = sorted({byte // ROW_BYTES for _, byte in taking_part})
    shown = {row: line for line, row in enumerate(rows[:MOST_ROWS])}
    figure, axes = _empty(len(shown))
    for row, line in shown.items():
        for bank in range(WARP):
            axes.add_patch(Rectangle((bank * WORD, line), WORD, 0.86, facecolor=SHADE, edgecolor="white", lw=1))
        axes.text(-1, line + 0.45, f"word {row * WARP:,}", ha="right", va="center", fontsize=7, color=TRUTH)
    seen: dict[int, set[int]] = {}
    for lane, byte in taking_part:
        words = seen.setdefault(byte % ROW_BYTES, set())
        words.add(byte // WORD)
        if byte // ROW_BYTES in shown:
            colour = YOURS if len(words) == 1 else OTHER
            _lane(axes, byte % ROW_BYTES, shown[byte // ROW_BYTES], one.size, lane, colour)
    axes.set_xticks([(bank + 0.5) * WORD for bank in range(0, WARP, 4)], range(0, WARP, 4))
    found = f"{passes} {'pass' if passes == 1 else 'passes'} over shared memory, {conflicts} of them by bank conflicts"
    axes.set_title(f"{title}\n{found}", loc="left", fontsize=9)
    axes.set_xlabel("bank; white numbers: lanes, red: another word of the same bank", fontsize=8)
    figure.alt = f"A warp's access to shared memory. {title}. {found}."
    return figure


def _empty(n_rows: int) -> tuple[LabFigure, Axes]:
    figure = LabFigure(figsize=(8.6, 1.3 + 0.24 * n_rows), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.set_xlim(-0.5, ROW_BYTES + 0.5)
    axes.set_ylim(max(n_rows, 1), -0.1)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=7)
    return figure, axes


def _lane(axes: Axes, x: float, line: int, size: int, lane: int, colour: str) -> None:
    axes.add_patch(Rectangle((x + 0.15, line + 0.1), size - 0.3, 0.66, facecolor=colour, edgecolor="none"))
    if size >= 2:
        axes.text(
            x + size / 2, line + 0.44, str(lane), ha="center", va="center", fontsize=6 if size > 2 else 4, color="white"
        )
