"""Lab 12: RMSNorm in one kernel forward and one backward: its budgets and its hints."""

from __future__ import annotations

import math
from dataclasses import replace

from labkit.compare import inputs_untouched
from labkit.exercises.lab12.rmsnorm import Norm
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import NO_OTHER, SAFE, at_full_size, compiled, moved
from labkit.oracles.lab12.close import (
    DOUT_HINT,
    LAID_OUT_HINT,
    TAKES_FLOAT32,
    dout_in_words,
    keeps_at_most,
    laid_out_like_dout,
    of_autograd,
    takes_dout_as_contiguous,
)
from labkit.oracles.lab12.rmsnorm_mistakes import (
    dweight_alone_is_wrong,
    dx_alone_is_wrong,
    ends_early,
    factor_rounded,
    forward_is_right,
    gradients_are_wrong,
    has_no_eps,
    has_no_root,
    has_no_weight,
    has_r_without_eps,
    has_rms_for_r,
    is_eps_for_each_element,
    is_eps_in_the_sum,
    is_layer_norm,
    is_mean_outside_the_root,
    is_rms_plus_eps,
    is_sum_for_mean,
    mean_of_the_block,
    of_a_later_call,
    rows_a_block_apart,
    rows_left_to_nobody,
    squares_overflow,
    sum_in_dx,
    through_the_factor_alone,
    weight_by_x,
    weight_left_out,
    weight_of_the_row,
    weight_times_weight,
)
from labkit.oracles.lab12.rmsnorm_values import expected, tolerances
from labkit.spec import Budget, CaseRun, Hint, Oracle

PARTIAL = 4
"""For this many rows, the backward pass may write one partial sum of the weight's gradient."""


def partial_bytes(case: Norm) -> int:
    """The partial sums of the weight's gradient in float32, one for every few rows."""
    return 4 * math.ceil(case.n_rows / PARTIAL) * case.n_cols


def load_bytes(run: CaseRun[Norm]) -> int:
    """x and the weight, twice; then x, dout and the weight, factors of rows, the partial sums, and what they make."""
    case = run.case
    return 7 * case.n_bytes + case.copied_bytes + 4 * case.n_rows + partial_bytes(case) + 4 * case.n_cols


def store_bytes(run: CaseRun[Norm]) -> int:
    """Two results and dx, the factors of rows, and partial sums; their sum, zeros to begin it with, and its cast."""
    case = run.case
    return 3 * case.n_bytes + case.copied_bytes + 8 * case.n_rows + partial_bytes(case) + 12 * case.n_cols


def moved_at_most() -> tuple[Budget, ...]:
    """Twice forward and once backward."""
    budgets = moved(load=load_bytes, store=store_bytes, atomic=lambda run: partial_bytes(run.case), launches=4)
    hints = {
        "load_bytes": "More is read than x and the weight in each pass, dout, and a partial sum for every 4 rows. Let "
        "each program of the backward pass take 4 rows or more: it loads the weight once and stores one partial sum.",
        "store_bytes": "More is written than the results, a number for each row, and a partial sum for every 4 rows. "
        "What a kernel fills needs no zeros first: torch.empty.",
    }
    return tuple(replace(one, hint=hints.get(one.name, one.hint)) for one in budgets)


RMSNORM = Oracle(
    id="12-rmsnorm",
    expect=expected,
    tolerance=tolerances,
    judge=(
        inputs_untouched,
        keeps_at_most(
            lambda case: 4 * case.n_rows,
            "Keep x, which is there anyway, and one float32 for each row. x times this number is the normalised row; "
            "compute it again in the backward pass.",
        ),
    ),
    budgets=(
        *SAFE,
        *moved_at_most(),
        *compiled(),
    ),
    full_size=at_full_size(),
    call=lambda run: (
        as_call("rmsnorm", *(run.tree[name] for name in ("x", "weight")), eps=run.case.eps) + dout_in_words(run.case)
    ),
    unusable=of_autograd("the gradients of x and weight, and None for eps"),
    errors=TAKES_FLOAT32,
    diagnose=(
        NO_OTHER,
        Hint(
            squares_overflow,
            "The square of a number from 256 on overflows in float16. Convert what you load with .to(tl.float32) "
            "before you square it.",
        ),
        Hint(
            rows_left_to_nobody,
            "Some rows of dx are stored by several programs, and others by none. A program's rows begin at "
            "tl.program_id(0) * ROWS and end before those of the next.",
        ),
        Hint(
            rows_a_block_apart,
            "A row begins n_cols elements behind the one before it, and not BLOCK_SIZE: row * n_cols + cols.",
        ),
        Hint(
            ends_early,
            "The last rows are never stored: there are too few programs for them. Round up, with triton.cdiv.",
        ),
        Hint(is_layer_norm, "This is layer norm: RMSNorm does not subtract the mean."),
        Hint(
            lambda run: not forward_is_right(run) and has_no_eps(run),
            "eps is missing: add it to the mean of the squares, under the root.",
        ),
        Hint(
            lambda run: not forward_is_right(run) and is_eps_in_the_sum(run),
            "eps was added to the sum of the squares, and divided by n_cols with it: add it to their mean.",
        ),
        Hint(
            lambda run: not forward_is_right(run) and is_rms_plus_eps(run),
            "eps belongs under the root: 1 / sqrt(mean + eps), not 1 / (sqrt(mean) + eps).",
        ),
        Hint(
            lambda run: not forward_is_right(run) and mean_of_the_block(run),
            "The mean of the squares is too small by the same factor everywhere: divide their sum by n_cols, not by "
            "BLOCK_SIZE.",
        ),
        Hint(
            lambda run: not forward_is_right(run) and is_eps_for_each_element(run),
            "eps was added to every square, also in the lanes past the row's end: add it once, to the mean.",
        ),
        Hint(
            is_mean_outside_the_root,
            "n_cols belongs under the root: 1 / sqrt(sum / n_cols + eps), not 1 / (sqrt(sum + eps) / n_cols).",
        ),
        Hint(
            weight_of_the_row,
            "Every row is multiplied by one number of the weight. It has one for each column: load it at cols, as a "
            "block.",
        ),
        Hint(is_sum_for_mean, "The squares are added up and not averaged: divide their sum by n_cols."),
        Hint(
            has_no_weight,
            "The result is not multiplied by the weight: each element of the normalised row has its own.",
        ),
        Hint(
            factor_rounded,
            "The gradients are off because r was rounded to float16 on its way to the backward pass. It has to be kept "
            "in float32, one number for each row: torch.empty(n_rows, dtype=torch.float32).",
        ),
        Hint(has_no_root, "The root is missing: the factor of a row is 1 / sqrt(mean + eps)."),
        Hint(lambda run: laid_out_like_dout(run, "dx"), LAID_OUT_HINT),
        Hint(lambda run: takes_dout_as_contiguous(run, "dx", expected), DOUT_HINT),
        Hint(
            lambda run: forward_is_right(run) and of_a_later_call(run),
            "dx is that of a later call. Keep tensors on ctx, which each call has for itself, not on the class or in a "
            "global variable.",
        ),
        Hint(
            lambda run: forward_is_right(run) and through_the_factor_alone(run),
            "dx has one term too few. Every x of a row is also in the row's root mean square, and through it in all "
            "outputs of the row.",
        ),
        Hint(
            lambda run: forward_is_right(run) and weight_left_out(run),
            "dx lacks the weight: what comes back to the normalised row is dout times the weight.",
        ),
        Hint(
            lambda run: forward_is_right(run) and weight_by_x(run),
            "The weight multiplies the normalised row, so its gradient sums up dout times x / rms, not dout times x.",
        ),
        Hint(
            lambda run: forward_is_right(run) and sum_in_dx(run),
            "In dx, the sum of g times the normalised row is not divided by n_cols: the formula has its mean.",
        ),
        Hint(
            lambda run: forward_is_right(run) and weight_times_weight(run),
            "The weight's gradient has the weight as a factor: it is the sum of dout times the normalised row, and g "
            "belongs to dx alone.",
        ),
        Hint(
            lambda run: forward_is_right(run) and dweight_alone_is_wrong(run),
            "out and dx are right, and dweight is not. Each program adds up dout times the normalised row over all of "
            "its rows, in float32, and stores that in a row of its own; the result is the sum of all of these rows.",
        ),
        Hint(
            lambda run: forward_is_right(run) and dx_alone_is_wrong(run),
            "out and dweight are right, and dx is not. With g = dout * weight it is r * (g - normal * mean), where "
            "mean is that of g * normal over the n_cols elements of the row.",
        ),
        Hint(
            has_rms_for_r,
            "The backward pass takes the root mean square for r. r is 1 over it: keep r, or divide by what you keep.",
        ),
        Hint(
            has_r_without_eps,
            "The backward pass works r out again and leaves eps out. Load the r that the forward pass has stored.",
        ),
        Hint(
            gradients_are_wrong,
            "out is right, and neither gradient is. Both are made of dout, r and the normalised row x * r: see that "
            "the backward pass has the forward pass's r, and multiplies x by it once.",
        ),
    ),
)
