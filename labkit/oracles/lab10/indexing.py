"""Lab 10: every element of a matrix once, by the thread that has its row and column, and what the usual slips make."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab10.indexing import Image
from labkit.oracles.cuda import and_faults
from labkit.oracles.lab10.warps import n_sectors, warps_of
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle

FLOAT_BYTES = 4

_GUARD = (
    "The grid is rounded up to whole blocks, so some threads have no element: each compares its row with rows and its "
    "column with cols before it touches memory."
)
ERRORS = and_faults(
    {
        "reads gain[": f"{_GUARD} If yours do, look at the index: `gain` has one number for each row.",
        "reads bias[": f"{_GUARD} If yours do, look at the index: `bias` has one number for each column.",
        "out of bounds:": f"{_GUARD} If yours do, look at the index: row r, column c lies at image[r * cols + c].",
        "race between blocks:": "Two blocks change the same element, and each element belongs to exactly one thread. "
        "See that row and column come from blockIdx * blockDim + threadIdx, whatever the block's size is, that no "
        "thread loops over elements of others, and that row r, column c lies at image[r * cols + c]. In C++ a comma "
        "in the brackets drops what stands before it: `image[r, c]` is image[c].",
    }
)

SWAPPED = (
    "x and y are swapped: the grid has as many blocks along x as the columns need, and along y as the rows need. So x "
    "gives the column and y the row."
)


def adjusted(run: CaseRun[Image]) -> torch.Tensor:
    tree = run.tree
    return tree["image"] * tree["gain"][:, None] + tree["bias"]


def places(run: CaseRun[Image]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(run.case.rows)[:, None], torch.arange(run.case.cols)[None, :]


def only_where(chosen: Callable[[CaseRun[Image]], torch.Tensor]) -> Callable[[CaseRun[Image]], bool]:
    """Whether exactly the chosen elements were adjusted, and the others left as they were."""

    def explains(run: CaseRun[Image]) -> bool:
        played = torch.where(chosen(run), adjusted(run), run.tree["image"])
        return torch.equal(run.got["image"], played)

    return explains


def x_for_rows(run: CaseRun[Image]) -> torch.Tensor:
    r, c = places(run)
    (grid_x, grid_y), (block_x, block_y) = run.case.grid, run.case.block
    return (r < grid_x * block_x) & (c < grid_y * block_y)


def one_thread_a_block(run: CaseRun[Image]) -> torch.Tensor:
    r, c = places(run)
    return (r % run.case.block[1] == 0) & (c % run.case.block[0] == 0)


def first_block_alone(run: CaseRun[Image]) -> torch.Tensor:
    r, c = places(run)
    return (r < run.case.block[1]) & (c < run.case.block[0])


def blocks_32_apart(run: CaseRun[Image]) -> torch.Tensor:
    """What is reached where block b begins at 32 * b along both axes, whatever its size."""
    r, c = places(run)
    (grid_x, grid_y), (block_x, block_y) = run.case.grid, run.case.block
    return (r % 32 < block_y) & (r // 32 < grid_y) & (c % 32 < block_x) & (c // 32 < grid_x)


def without_the_last_blocks(run: CaseRun[Image]) -> torch.Tensor:
    """What a guard leaves that lets only whole blocks work."""
    r, c = places(run)
    block_x, block_y = run.case.block
    return (r < run.case.rows // block_y * block_y) & (c < run.case.cols // block_x * block_x)


def untouched(run: CaseRun[Image]) -> torch.Tensor:
    return torch.zeros(run.case.rows, run.case.cols, dtype=torch.bool)


def column_by_column(run: CaseRun[Image]) -> bool:
    """Whether element r, c was looked for at c * rows + r, as in a matrix that is stored column by column."""
    tree, (rows, cols) = run.tree, (run.case.rows, run.case.cols)
    by_columns = tree["image"].reshape(cols, rows).T
    changed = by_columns * tree["gain"][:, None] + tree["bias"]
    return torch.equal(run.got["image"], changed.T.reshape(rows, cols))


def added_first(run: CaseRun[Image]) -> bool:
    tree = run.tree
    return torch.equal(run.got["image"], tree["gain"][:, None] * (tree["image"] + tree["bias"]))


def plain_index(run: CaseRun[Image]) -> bool:
    """Whether gain and bias were taken the other way round, which a matrix with as many rows as columns permits."""
    tree = run.tree
    return torch.equal(run.got["image"], tree["image"] * tree["gain"] + tree["bias"][:, None])


def store_sectors(run: CaseRun[Image]) -> int:
    """Of a warp whose lanes have neighbouring columns, wherever a row of the block fits into it."""
    warps = warps_of(run.case.grid, run.case.block)
    active = warps.there & (warps.x < run.case.cols) & (warps.y < run.case.rows)
    return n_sectors((warps.y * run.case.cols + warps.x) * FLOAT_BYTES, active)


def launched(run: Observation) -> str:
    case = run.case
    return f"adjust<<<{case.grid}, {case.block}>>>(image, gain, bias, rows={case.rows}, cols={case.cols})"


INDEXING = Oracle(
    id="10-indexing",
    expect=lambda run: {"image": adjusted(run)},
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "global_store_sectors",
            store_sectors,
            "The values are right, but a warp's stores are far apart, or some elements are stored more than once. The "
            "32 threads of a warp differ in threadIdx.x first: let x give the column, so that they store to "
            "neighbouring addresses.",
        ),
    ),
    diagnose=(
        Hint(only_where(untouched), "No element was changed: each thread has to store its result to image."),
        Hint(only_where(x_for_rows), SWAPPED),
        Hint(
            only_where(one_thread_a_block),
            "Only one element of each block was changed: all threads of a block have the same blockIdx. Add threadIdx.",
        ),
        Hint(
            only_where(first_block_alone),
            "Only the first block's elements were changed: threadIdx begins anew in every block. Add blockIdx * "
            "blockDim.",
        ),
        Hint(
            only_where(blocks_32_apart),
            "Elements between the blocks are missing: block b begins at b * blockDim.x along x and at b * blockDim.y "
            "along y, not at b * 32.",
        ),
        Hint(
            only_where(without_the_last_blocks),
            "The elements of the last, partial blocks are missing: the guard has to be asked by each thread for its "
            "own element, not for the block.",
        ),
        Hint(
            column_by_column,
            "PyTorch stores a matrix row by row: row r, column c lies at image[r * cols + c]. c * rows + r would be "
            "right if it were stored column by column.",
        ),
        Hint(
            lambda run: torch.equal(run.got["image"], run.tree["image"] + adjusted(run)),
            "The old value was added once more: the new one takes its place, `=` and not `+=`.",
        ),
        Hint(added_first, "The bias is added last: `gain[r] * image[r, c] + bias[c]`."),
        Hint(
            plain_index, "`gain` has one number for each row and `bias` one for each column, not the other way round."
        ),
    ),
    errors=ERRORS,
    axis="matrices whose sides are no multiples of the block's, blocks of other shapes, and grids that are too large",
    call=launched,
)
