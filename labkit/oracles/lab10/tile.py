"""Lab 10: a transpose in tiles: its values, the fewest sectors both ways, and what the usual slips make."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.tile import BLOCK, SIDE, Matrix
from labkit.oracles.cuda import FAULTS, and_faults
from labkit.oracles.lab10.warps import n_sectors
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle

FLOAT_BYTES = 4
SECTORS_OF_A_ROW = 5
"""The most of 32 floats: where they begin in the middle of a sector."""

ERRORS = and_faults(
    {
        "barrier:": FAULTS["barrier:"],
        "out of bounds: reads x[": "A thread reads past the end of x: rows and columns are no multiples of 32. "
        "Read only where the element's own row is below rows and its column below cols.",
        "out of bounds: writes y[": "A thread writes past the end of y, which has cols rows and rows columns. A "
        "block's tile begins at row 32 * blockIdx.x, column 32 * blockIdx.y; row R, column C of y is y[R * rows + C].",
        "out of bounds:": "The tile has 32 × 32 places, and the block has 8 rows of 32 threads: each thread loops over "
        "the tile's rows threadIdx.y, threadIdx.y + 8, and so on, below 32.",
        "uninitialized shared memory:": "A place of the tile is read that nobody has written. Each block has 32 × 8 "
        "threads and a tile of 32 × 32, so each thread reads four elements and writes four. Where the matrix ends, "
        "the guard of the second loop asks for the place in y: its row, left + i, has to be below cols, and its "
        "column, top + threadIdx.x, below rows.",
        "race: writes": "Two threads write the same place of the tile. Each row of the tile belongs to one row of the "
        "block: thread (x, y) has the rows y, y + 8, y + 16 and y + 24, so its loops step by 8.",
        "race between blocks:": "Two blocks write or read the same element of y. The tile that block (bx, by) reads "
        "begins at row 32 * by, column 32 * bx of x; it writes the tile at row 32 * bx, column 32 * by of y.",
    }
)


def row_pieces(n_rows: int, n_cols: int) -> int:
    """Sectors of a matrix that is accessed row by row, in pieces of 32 columns."""
    r, piece, lane = np.ogrid[:n_rows, : -(-n_cols // SIDE), :SIDE]
    c = SIDE * piece + lane
    addresses = (r * n_cols + c) * FLOAT_BYTES
    return n_sectors(addresses.reshape(-1, SIDE), np.broadcast_to(c < n_cols, addresses.shape).reshape(-1, SIDE))


def load_sectors(run: CaseRun[Matrix]) -> int:
    return row_pieces(run.case.rows, run.case.cols)


def store_sectors(run: CaseRun[Matrix]) -> int:
    return row_pieces(run.case.cols, run.case.rows)


def transposed(run: CaseRun[Matrix]) -> torch.Tensor:
    return run.tree["x"].T.contiguous()


def places(run: CaseRun[Matrix]) -> tuple[torch.Tensor, torch.Tensor]:
    """Row and column of each element of y."""
    return torch.arange(run.case.cols)[:, None], torch.arange(run.case.rows)[None, :]


def takes(row: Callable, col: Callable) -> Callable[[CaseRun[Matrix]], object]:
    """Whether y[R, C] is x[row(R, C), col(R, C)] wherever both exist."""

    def explains(run: CaseRun[Matrix]) -> object:
        r, c = (place.expand(run.case.cols, run.case.rows) for place in places(run))
        from_r, from_c = row(r, c), col(r, c)
        there = (from_r < run.case.rows) & (from_c < run.case.cols)
        found = run.tree["x"][from_r.clamp(max=run.case.rows - 1), from_c.clamp(max=run.case.cols - 1)]
        if torch.equal(transposed(run)[there], found[there]):
            return CANNOT_TELL
        return torch.equal(run.got["y"][there], found[there])

    return explains


def inside(place: torch.Tensor) -> torch.Tensor:
    return place % SIDE


def corner(place: torch.Tensor) -> torch.Tensor:
    return place - place % SIDE


def right_only_where(chosen: Callable[[CaseRun[Matrix]], torch.Tensor]) -> Callable[[CaseRun[Matrix]], bool]:
    """Whether y was written at these places alone, and rightly there."""

    def explains(run: CaseRun[Matrix]) -> bool:
        got, written = run.got["y"], chosen(run).expand(run.case.cols, run.case.rows)
        return torch.equal(got[written], transposed(run)[written]) and bool(got[~written].isnan().all())

    return explains


def in_first_rows(run: CaseRun[Matrix]) -> torch.Tensor:
    return places(run)[0] % SIDE < BLOCK[1]


def in_extents_exchanged(run: CaseRun[Matrix]) -> torch.Tensor:
    r, c = places(run)
    return (r < run.case.rows) & (c < run.case.cols)


def rows_of_x_in_y(run: CaseRun[Matrix]) -> bool:
    """Whether the places that y[R * cols + C] reaches were written, and no others."""
    r, c = places(run)
    reached = torch.zeros(run.case.rows * run.case.cols, dtype=torch.bool)
    reached[(r * run.case.cols + c).flatten()] = True
    return torch.equal(run.got["y"].flatten().isnan(), ~reached)


def copied(run: CaseRun[Matrix]) -> bool:
    return torch.equal(run.got["y"].flatten(), run.tree["x"].flatten())


def reads_the_edge_again(run: CaseRun[Matrix]) -> bool:
    """Whether only loads are too many, and only where a tile is cut off: at most what whole tiles would touch.

    A strided load is also too many where all tiles are whole, and then this explains nothing.
    """
    n_tiles = -(-run.case.rows // SIDE) * -(-run.case.cols // SIDE)
    if not torch.equal(run.got["y"], transposed(run)) or not (run.case.rows % SIDE or run.case.cols % SIDE):
        return False
    loads, stores = run.measured["global_load_sectors"], run.measured["global_store_sectors"]
    return load_sectors(run) < loads <= n_tiles * SIDE * SECTORS_OF_A_ROW and stores <= store_sectors(run)


def mixed_up(run: CaseRun[Matrix]) -> object:
    """Whether each tile holds what it should, in other places."""
    if run.case.rows % SIDE or run.case.cols % SIDE:
        return CANNOT_TELL
    got, wanted = (
        y.unfold(0, SIDE, SIDE).unfold(1, SIDE, SIDE).flatten(2).sort().values for y in (run.got["y"], transposed(run))
    )
    return torch.equal(got, wanted)


def launched(name: str) -> Callable[[Observation], str]:
    return lambda run: f"{name}<<<{run.case.grid}, {BLOCK}>>>(x, y, rows={run.case.rows}, cols={run.case.cols})"


SECTORS = (
    Budget(
        "global_load_sectors",
        load_sectors,
        "Loads are strided: the threads of a warp differ in threadIdx.x, so it has to be added to the last index when "
        "x is read. Read rows of x into the tile, and turn the tile when it is read.",
    ),
    Budget(
        "global_store_sectors",
        store_sectors,
        "Stores are strided: neighbouring threads write a whole column of y, a sector for each lane. The threads of a "
        "warp differ in threadIdx.x, so it has to be added to the last index when y is written, too: exchange the "
        "indices of the tile, not those of y.",
    ),
)


def _of_values(when: Callable[[CaseRun[Matrix]], object], text: str) -> Hint:
    """A hint on wrong values, which says nothing of right ones that cost too much."""
    return Hint(lambda run: not torch.equal(run.got["y"], transposed(run)) and when(run), text)


VALUES = (
    _of_values(
        takes(lambda r, c: corner(c) + inside(r), lambda r, c: corner(r) + inside(c)),
        "Each tile arrives at its place, but is not turned: write tile[i][j] and read tile[j][i].",
    ),
    _of_values(
        takes(lambda r, c: corner(r) + inside(c), lambda r, c: corner(c) + inside(r)),
        "Each tile is turned, but stays where it was: block (bx, by) reads the tile at row 32 * by, column 32 * bx of "
        "x, and writes the one at row 32 * bx, column 32 * by of y.",
    ),
    _of_values(
        takes(lambda r, c: corner(c) // SIDE * BLOCK[1] + inside(c), lambda r, c: r),
        "Each tile is read from row 8 * blockIdx.y of x on. The block has 8 rows of threads, but its tile has 32 rows, "
        "so it begins at row 32 * blockIdx.y.",
    ),
    _of_values(copied, "This is a copy of x: nothing was transposed."),
    _of_values(
        right_only_where(in_first_rows),
        "Only 8 of the 32 rows of each tile were written: the block has 8 rows of threads, so each thread has to write "
        "four elements, 8 rows apart.",
    ),
    _of_values(
        right_only_where(in_extents_exchanged),
        "Elements are missing where the guard of the store compares with the wrong extent: y has cols rows and rows "
        "columns, so its row has to be below cols and its column below rows.",
    ),
    _of_values(rows_of_x_in_y, "y has rows columns, so row R, column C of y is y[R * rows + C]."),
    Hint(
        lambda run: run.measured["shared_requests"] == 0,
        "The kernel does not use shared memory. As long as a thread writes what it has read itself, loads or stores "
        "are strided. Declare `__shared__ float tile[32][32];` (an array without `__shared__` belongs to one thread "
        "alone), let each thread put there what it has read, and write what another one has put there.",
    ),
    Hint(
        reads_the_edge_again,
        "Where the matrix ends, elements are read that another thread reads, too, as with an index that is clamped to "
        "the last row or column. A thread whose element does not exist has nothing to read: ask before each load.",
    ),
    _of_values(
        mixed_up,
        "Each tile holds the right numbers, but in the wrong places: an element has to be looked for in the tile where "
        "it was put. If its place is computed when it is written, compute it the same way when it is read.",
    ),
)

TILE = Oracle(
    id="10-tile",
    expect=lambda run: {"y": transposed(run)},
    judge=(inputs_untouched,),
    budgets=SECTORS,
    diagnose=VALUES,
    errors=ERRORS,
    axis="matrices whose sides are no multiples of 32",
    call=launched("tiled_transpose"),
)
