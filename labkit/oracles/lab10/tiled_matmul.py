"""Lab 10: a product in tiles: its values, and that every element of A and B comes from memory once for each tile."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.tiled_matmul import TILE, Product
from labkit.oracles.cuda import and_faults
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, Budget, CaseRun, Hint, Observation, Oracle

SECTOR = 8
"""Floats."""
SLACK = 1.1
ERRORS = and_faults(
    {
        "race: ": "Threads fill the tiles while others still read them, or read them before they are full. A "
        "round takes two `__syncthreads()`: one after the tiles are filled, one after they have been used.",
        "barrier:": "Threads past the edge of C still have to help: they fill their place of the tiles and pass every "
        "`__syncthreads()`. Only the last store is for those whose element exists.",
        "out of bounds: reads": "A thread fills its place of a tile from past the edge of A or B. Where row or column "
        "do not exist, the place is 0: check both of them for A and for B, k included.",
        "out of bounds: writes": "C has fewer rows or columns than the grid has threads: store only where both exist.",
        "uninitialized shared memory:": "A place of a tile is read that no thread has written. Past the edge of A or B "
        "write 0 there, and let all threads pass a `__syncthreads()` before the tiles are used.",
    }
)


def right(run: CaseRun[Product]) -> torch.Tensor:
    return run.tree["a"] @ run.tree["b"]


def row_sectors(rows: range, cols: range, width: int) -> int:
    """Sectors of a part of a matrix with rows of `width` floats, one row at a time."""
    return sum((row * width + cols[-1]) // SECTOR - (row * width + cols[0]) // SECTOR + 1 for row in rows)


@once
def ideal_loads(run: CaseRun[Product]) -> int:
    """Sectors that all blocks' tiles of A and B take."""
    case = run.case

    def pieces(n: int) -> list[range]:
        return [range(start, min(start + TILE, n)) for start in range(0, n, TILE)]

    of_a = sum(row_sectors(rows, cols, case.k) for rows in pieces(case.m) for cols in pieces(case.k))
    of_b = sum(row_sectors(rows, cols, case.n) for rows in pieces(case.k) for cols in pieces(case.n))
    return of_a * len(pieces(case.n)) + of_b * len(pieces(case.m))


@once
def ideal_stores(run: CaseRun[Product]) -> int:
    case = run.case
    cols = [range(start, min(start + TILE, case.n)) for start in range(0, case.n, TILE)]
    return sum(row_sectors(range(case.m), one, case.n) for one in cols)


def is_result(play: Callable[[CaseRun[Product]], torch.Tensor | None]) -> Callable[[CaseRun[Product]], object]:
    """Whether a mistake gives exactly this result, which is not the right one. play: None where it cannot be told."""

    def explains(run: CaseRun[Product]) -> object:
        if torch.equal(run.got["c"], right(run)):
            return False
        played = play(run)
        return CANNOT_TELL if played is None else torch.equal(run.got["c"], played)

    return explains


def first_k(run: CaseRun[Product], n: int) -> torch.Tensor:
    return run.tree["a"][:, :n] @ run.tree["b"][:n]


def stale(run: CaseRun[Product]) -> torch.Tensor | None:
    """What comes out where the last, partial tiles keep in their rest what the tiles before had there."""
    rest = run.case.k % TILE
    if rest == 0 or run.case.k < TILE:
        return None
    end = run.case.k - rest
    kept = slice(end - TILE + rest, end)
    return right(run) + run.tree["a"][:, kept] @ run.tree["b"][kept]


def turned_tiles(run: CaseRun[Product], a: bool, b: bool) -> torch.Tensor:
    """What comes out where each tile of A, or of B, is read with rows for columns."""
    case = run.case
    m, n, k = (-(-size // TILE) * TILE for size in (case.m, case.n, case.k))
    full_a, full_b = torch.zeros(m, k), torch.zeros(k, n)
    full_a[: case.m, : case.k], full_b[: case.k, : case.n] = run.tree["a"], run.tree["b"]
    of_a, of_b = (each.unfold(0, TILE, TILE).unfold(1, TILE, TILE) for each in (full_a, full_b))
    of_a, of_b = of_a.mT if a else of_a, of_b.mT if b else of_b
    tiles = torch.einsum("mkij,knjl->mnil", of_a, of_b)
    return tiles.transpose(1, 2).reshape(m, n)[: case.m, : case.n]


def reached_with_x_for_rows(run: CaseRun[Product]) -> object:
    """Whether exactly those elements are stored to which threads come whose x gives the row and whose y the column."""
    (grid_x, grid_y), (m, n) = run.case.grid, (run.case.m, run.case.n)
    reached = (torch.arange(m)[:, None] < grid_x * TILE) & (torch.arange(n) < grid_y * TILE)
    return CANNOT_TELL if reached.all() else torch.equal(run.got["c"].isnan(), ~reached)


def launched(run: Observation) -> str:
    x, y = run.case.grid
    return f"matmul<<<({x}, {y}), ({TILE}, {TILE})>>>(a, b, c, m={run.case.m}, n={run.case.n}, k={run.case.k})"


TILED_MATMUL = Oracle(
    id="10-tiled-matmul",
    expect=lambda run: {"c": right(run)},
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "global_load_sectors",
            lambda run: SLACK * ideal_loads(run),
            "Elements of A and B come from memory more often than once for each tile of C. Let the block copy a tile "
            "of each into shared memory, neighbouring threads neighbouring columns, and let all threads read it there.",
        ),
        Budget(
            "global_store_sectors",
            lambda run: SLACK * ideal_stores(run),
            "Stores touch more sectors than they have to: threads that follow one another along x store neighbouring "
            "columns of C.",
        ),
        Budget(
            "bank_conflicts",
            0,
            "Two lanes of a warp meet in one bank of shared memory. A warp fills two rows of 16 words, which are the "
            "32 banks exactly: with a longer row, or with rows and columns of the tile exchanged, they overlap.",
        ),
    ),
    diagnose=(
        Hint(
            reached_with_x_for_rows,
            "x and y are swapped: the grid has as many blocks along x as the columns of C need, and along y as its "
            "rows need. So x gives the column and y the row.",
        ),
        Hint(
            is_result(lambda run: right(run) - first_k(run, (run.case.k - 1) // TILE * TILE)),
            "Only the last tiles along k are in the result: add up over all of them, and set the sum to 0 once, before "
            "the loop.",
        ),
        Hint(
            is_result(lambda run: first_k(run, run.case.k // TILE * TILE)),
            "The last tiles along k, which are only partly filled, are missing: round the number of tiles up.",
        ),
        Hint(
            is_result(lambda run: first_k(run, min(TILE, run.case.k))),
            "Only the first tiles along k are in the result: move on along the columns of A and the rows of B.",
        ),
        *(
            Hint(
                is_result(lambda run, a=a, b=b: turned_tiles(run, a, b)),
                f"{'Both tiles are' if a and b else f'The tile of {name} is'} read with rows and columns exchanged. "
                "For element (row, col) of C take row y of the tile of A and column x of the tile of B: "
                "ta[y][i] * tb[i][x].",
            )
            for name, a, b in (("A", True, False), ("B", False, True), ("both", True, True))
        ),
        Hint(
            is_result(stale),
            "In the last tiles along k, what lies past the edge still holds numbers of other tiles: write 0 there.",
        ),
    ),
    errors=ERRORS,
    axis="sizes that no tile divides",
    call=launched,
)
