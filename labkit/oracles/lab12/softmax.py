"""Lab 12: what is true of softmax in one pass, and what the usual mistakes look like."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.compare import inputs_untouched
from labkit.exercises.lab12.shapes import Rows
from labkit.exercises.lab12.softmax import DEEP_ROW, LOW_ROW, MASKED_ROW
from labkit.oracles.calls import as_call
from labkit.oracles.kernels import COPIED, NO_OTHER, SAFE, at_full_size, compiled, moved
from labkit.oracles.lab12.close import ROUNDED, computed_in_float32, ends_unwritten, rounded_once
from labkit.spec import CaseRun, Hint, Observation, Oracle
from labkit.unwritten import unwritten


def expected(run: CaseRun[Rows]) -> dict:
    x = run.tree["x"][:, : run.case.n_cols]
    return {"out": torch.softmax(x.float(), -1).to(x.dtype), "contiguous": True}


def in_students_names(run: Observation) -> str:
    gap = run.case.gap
    rows = f", where x has strides {run.tree['x'].stride()}" if gap else ""
    return as_call("softmax", run.tree["x"][:, : run.case.n_cols]) + rows


def result(run: CaseRun[Rows]) -> Tensor:
    """The result in float64. What has another shape is no matrix whose rows could be looked at."""
    if run.got["out"].shape != (run.case.n_rows, run.case.n_cols):
        raise ValueError("another shape")
    return run.got["out"].double()


def right_rows(run: CaseRun[Rows]) -> Tensor:
    """Of each row, whether it is right, more or less."""
    right = run.expected["out"].double()
    return torch.isclose(result(run), right, rtol=1e-2, atol=1e-3).all(-1)


def no_maximum(run: CaseRun[Rows]) -> bool:
    out = result(run)
    return bool(out[0].isnan().any() and not out[MASKED_ROW].isnan().any())


def fails_far_below(run: CaseRun[Rows]) -> bool:
    """0/0 in the row that lies deepest, or in both of the low ones, since all exponentials are 0; nowhere else."""
    wrong = ~right_rows(run)
    in_low_rows = wrong[DEEP_ROW] and wrong.sum() == 1 + wrong[LOW_ROW]
    return bool(in_low_rows and result(run)[wrong].isnan().all())


def columns_unwritten(run: CaseRun[Rows]) -> bool:
    """Nothing was stored from some column on."""
    missing = unwritten(run.got["out"])
    in_all, in_any = missing.all(0), missing.any(0)
    first = int(in_all.int().argmax())
    return first > 0 and bool(in_all[first:].all() and not in_any[:first].any())


def other_rows(run: CaseRun[Rows]) -> bool:
    """The first row is right and the second, in a matrix with gaps, is not."""
    right = right_rows(run)
    return run.case.gap > 0 and bool(right[0] and not right[1])


def nearly(run: CaseRun[Rows]) -> bool:
    """Off by more than one rounding of the result, and not by much."""
    right, out = run.expected["out"].float(), result(run).float()
    close = torch.allclose(out, right, rtol=0.1, atol=1e-3)
    return run.case.dtype != "float32" and close and not torch.allclose(out, right, rtol=2e-3, atol=1e-6)


def sums_too_large(run: CaseRun[Rows]) -> bool:
    return bool((result(run).sum(-1) > 1.01).any())


def sums_too_small(run: CaseRun[Rows]) -> bool:
    """Some rows lose a part to lanes behind their end. In others these count for nothing, beside large numbers; in none
    may be that, where lanes without a mask meet the gaps between the rows."""
    out = result(run)
    lacking = (out >= 0).all() and (out.sum(-1) < 0.99).any()
    return bool(lacking and (right_rows(run).any() or run.measured["out_of_bounds"] > 0))


def only_far_below_too_small(run: CaseRun[Rows]) -> bool:
    """Rows lose a part to lanes past their end where all of their own numbers are lower, and nowhere else."""
    wrong, out = ~right_rows(run), result(run)
    lacking = (out >= 0).all(-1) & (out.sum(-1) < 0.99)
    return bool(wrong[DEEP_ROW] and wrong.sum() == 1 + wrong[LOW_ROW] and lacking[wrong].all())


SOFTMAX = Oracle(
    id="12-softmax",
    expect=expected,
    tolerance=rounded_once,
    judge=(inputs_untouched, computed_in_float32("out")),
    budgets=(
        *SAFE,
        # Each element is read once and written once; where the rows fill the threads, two float32 at once.
        *moved(load=lambda run: run.case.n_bytes, store=lambda run: run.case.n_bytes, launches=1),
        *compiled(vector_width=lambda run: 8 if run.case.n_cols % 1024 == 0 else 0),
    ),
    full_size=at_full_size(),
    call=in_students_names,
    diagnose=(
        NO_OTHER,
        COPIED,
        Hint(
            no_maximum,
            "exp overflows where the numbers are large. Subtract the row's maximum first: the factor that this brings "
            "in cancels.",
        ),
        Hint(
            fails_far_below,
            "In a row far below 0 every exponential is 0, and 0/0 is no number. Subtract the row's own maximum, which "
            "may be negative. Lanes past the end take part in it: load them with other=-float('inf').",
        ),
        Hint(
            lambda run: ends_unwritten(run.got["out"], run.expected["out"]),
            "The last rows are never stored: the grid needs a program for each row, its length rounded up where a "
            "program takes several.",
        ),
        Hint(
            columns_unwritten,
            "The ends of the rows are never stored: the block needs as many lanes as the longest row has elements.",
        ),
        Hint(
            nearly,
            ROUNDED,
        ),
        Hint(
            other_rows,
            "The first row is right and the second is not: rows need not lie n_cols elements apart. Hand x.stride(0) "
            "to the kernel for loading, and out.stride(0) for storing.",
        ),
        Hint(
            sums_too_large,
            "The rows sum up to more than 1: divide the exponentials by their sum over the row.",
        ),
        Hint(
            only_far_below_too_small,
            "Rows far below 0 sum up to less than 1: lanes past the end of the row take part, and what they hold is "
            "larger than all of the row's numbers. Load them as -float('inf'), the only value that is below any row.",
        ),
        Hint(
            sums_too_small,
            "The rows sum up to less than 1: lanes past the end of the row take part in the sum. Load them as "
            "-float('inf'), whose exp is 0.",
        ),
        Hint(
            lambda run: run.got["contiguous"] is False,
            "The result is not contiguous: make it with torch.empty(x.shape, ...), which lies in memory row after row.",
        ),
    ),
)
