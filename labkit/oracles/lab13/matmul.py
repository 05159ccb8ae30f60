"""Lab 13: what is true of a matrix product in tiles, and what is said of a wrong one."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab13.matmul import Product, factors
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import COPIED, NO_OTHER, SAFE, at_full_size, compiled, filled, moved
from labkit.oracles.lab13.matmul_mistakes import (
    axes_swapped,
    first_step_again,
    first_step_left_out,
    in_float16,
    in_tf32,
    never_stored,
    one_step_alone,
    overwritten,
    product,
    rest_left_out,
    rest_not_written,
    rounded_on_the_way,
    rows_taken_as_dense,
    shaped_like_a_factor,
    steps_of_one,
    stored_by_columns,
    strides_ignored,
    strides_of_the_other,
    strides_swapped,
    sum_so_far_twice,
    tiles_too_small,
    zero_past_the_other_size,
)
from labkit.spec import Budget, CaseRun, Hint, Observation, Oracle, Tolerance

SLACK = 1.1
"""Times the derived bytes that may be loaded."""
SPILLED_BYTES = 32
"""A thread may keep eight numbers outside of its registers: how many the compiler needs for addresses is its affair."""


def expected(run: CaseRun[Product]) -> dict:
    """By PyTorch in float64, rounded at the end."""
    return {"out": product(*factors(run.case, run.tree)).to(getattr(torch, run.case.dtype))}


def tolerances(run: CaseRun[Product]) -> Tolerance:
    """Of sums of normally distributed products: float32 throughout, tf32 operands, or float16 rounded once."""
    if run.case.dtype == "float16":
        return Tolerance(rtol=1e-3, atol=1e-3)
    if run.case.precision == "ieee":
        return Tolerance(rtol=1e-5, atol=5e-5)
    # Ten bits of mantissa, cut off: each product is off by up to 2^-9, in the worst case all to the same side.
    a, b = factors(run.case, run.tree)
    return Tolerance(rtol=0, atol=float(product(a.abs(), b.abs()).max()) * 2**-9)


def derived_bytes(case: Product, n_rows: int, n_cols: int) -> int:
    """Each row of tiles of the result reads all n_cols of b, each column of tiles all n_rows of a."""
    rows_of_tiles, cols_of_tiles = -(-case.n_rows // case.tile), -(-case.n_cols // case.tile)
    return case.n_inner * (n_rows * cols_of_tiles + n_cols * rows_of_tiles) * case.itemsize


def most_loaded(run: CaseRun[Product]) -> float:
    """With some slack, or with lanes past the edge that load other rows and columns a second time."""
    case = run.case
    whole_rows, whole_cols = (-(-n // case.tile) * case.tile for n in (case.n_rows, case.n_cols))
    return max(SLACK * derived_bytes(case, case.n_rows, case.n_cols), derived_bytes(case, whole_rows, whole_cols))


def least_loaded(run: CaseRun[Product]) -> float:
    return derived_bytes(run.case, run.case.n_rows, run.case.n_cols)


def stored_bytes(run: CaseRun[Product]) -> int:
    """Each element of the result once."""
    return run.case.n_rows * run.case.n_cols * run.case.itemsize


def flops_on_matrix_units(run: CaseRun[Product]) -> int:
    """All of the product's, where there is a matrix instruction for it: exact float32 has none."""
    case = run.case
    on_them = case.dtype == "float16" or case.precision == "tf32"
    return 2 * case.n_rows * case.n_cols * case.n_inner if on_them else 0


def in_students_names(run: Observation) -> str:
    a, b = factors(run.case, run.tree)
    call = as_call("matmul", a, b, precision=run.case.precision, tile=run.case.tile)
    return f"{call}, with strides {a.stride()} and {b.stride()}"


MATMUL = Oracle(
    id="13-matmul",
    expect=expected,
    tolerance=tolerances,
    judge=(inputs_untouched,),
    budgets=(
        *SAFE,
        *moved(load=most_loaded, store=stored_bytes, launches=1),
        Budget(
            "load_bytes",
            least_loaded,
            "Tiles of `tile` x `tile` elements read more than this: take the tile that your function is given.",
            at_least=True,
        ),
        *compiled(matrix_flops=flops_on_matrix_units, spills=SPILLED_BYTES),
    ),
    full_size=at_full_size(SPILLED_BYTES),
    call=in_students_names,
    diagnose=(
        NO_OTHER,
        COPIED,
        filled(stored_bytes),
        Hint(
            shaped_like_a_factor,
            "The result has a factor's shape. It has as many rows as a and as many columns as b: torch.empty(n_rows, "
            "n_cols, ...).",
        ),
        Hint(
            in_tf32,
            "The factors were rounded to tf32, which is what tl.dot does with float32 unless told otherwise: hand "
            "`precision` on to it as input_precision.",
        ),
        Hint(
            in_float16,
            "float32 was rounded to float16 on the way: hand the tiles to tl.dot as they are, and convert to the dtype "
            "of the result, c_ptr.dtype.element_ty.",
        ),
        Hint(
            sum_so_far_twice,
            "The sum so far is added twice in each step: tl.dot(a, b, acc) returns acc + a @ b already, so write "
            "acc = tl.dot(a, b, acc), not acc += ...",
        ),
        Hint(
            rest_left_out,
            "The last piece of the inner dimension is missing from the sums: let the loop end at n_inner, not at a "
            "multiple of STEP, and mask the last step.",
        ),
        Hint(
            one_step_alone,
            "Only the last step along the inner dimension is in the result: hand the sum so far to `tl.dot` as its "
            "third argument, or add to it.",
        ),
        Hint(
            first_step_left_out,
            "The first step along the inner dimension is missing from the sums: let the loop begin at 0.",
        ),
        Hint(
            first_step_again,
            "Every step multiplies the same two tiles, the first ones: the offsets along the inner dimension begin at "
            "`start`.",
        ),
        Hint(
            overwritten,
            "Only the beginnings of rows are wrong: lanes past the end of the row above wrote there. Mask the store "
            "in both of its dimensions, with <.",
        ),
        Hint(
            axes_swapped,
            "The last rows or columns of tiles have no program: the grid has its two axes in the other order than "
            "tl.program_id.",
        ),
        Hint(
            tiles_too_small,
            "Programs have smaller tiles than the grid counts on, so what lies between is never stored. Both take "
            "`tile`: TILE=tile in the launch, and triton.cdiv(..., tile) in the grid.",
        ),
        Hint(
            rest_not_written,
            "Whole tiles are right, and the rest at the end of the rows or columns is not: round the grid up with "
            "triton.cdiv, and let masks drop the lanes that are too many.",
        ),
        Hint(
            rounded_on_the_way,
            "The values are nearly right, but the sum was rounded to float16 on the way. Keep it in float32 through "
            "all steps and convert what is stored.",
        ),
        Hint(
            never_stored,
            "Elements of the result were never stored. Program (i, j) has the tile that begins in row i * tile and "
            "column j * tile, and element (row, col) of the result lies at row * n_cols + col.",
        ),
        Hint(
            stored_by_columns,
            "The result was stored column by column: element (row, col) of it lies at row * n_cols + col.",
        ),
        Hint(
            zero_past_the_other_size,
            "Rows or columns at the end of the result are 0, because masks leave them out: row numbers of a are to be "
            "compared with n_rows, column numbers of b with n_cols.",
        ),
        Hint(
            steps_of_one,
            "Neighbouring steps overlap: the number of a step is taken for an offset. Multiply it by STEP, or let the "
            "loop go over range(0, n_inner, STEP).",
        ),
        Hint(
            strides_swapped,
            "A factor was read with its two strides swapped. Element (i, j) lies at i * stride(0) + j * stride(1); in "
            "a tile of b, the offsets along the inner dimension are the rows.",
        ),
        Hint(
            strides_of_the_other,
            "A factor was read with the other one's strides. Hand all four to the kernel in its order: *a.stride(), "
            "*b.stride().",
        ),
        Hint(
            strides_ignored,
            "A factor was read as if its rows lay one right after the other. Element (i, j) lies at i * stride(0) + "
            "j * stride(1): hand both strides to the kernel.",
        ),
        Hint(
            rows_taken_as_dense,
            "A factor was read as if the elements of a row were neighbours in memory: a column number is multiplied by "
            "stride(1).",
        ),
    ),
)
