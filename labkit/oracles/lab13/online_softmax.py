"""Lab 13: the oracle of a softmax's statistics: by the library in float64, with a few blocks held at once."""

from __future__ import annotations

import torch
from torch import Tensor

from labkit.compare import inputs_untouched
from labkit.exercises.lab13.online_softmax import Blocks
from labkit.oracles.lab13.softmax_hints import HINTS
from labkit.spec import Budget, CaseRun, Oracle, Tolerance

BLOCKS_HELD = 8
"""Blocks in float32: the last one and the next, a conversion, a difference, an exponential, and as many of the last."""


def stats_of(top: Tensor, log_total: Tensor) -> tuple[Tensor, Tensor]:
    """(top, total) in float32, from the logarithm of the sum of exponentials; where there was nothing, a total of 0."""
    total = torch.where(top == -torch.inf, 0.0, torch.exp(log_total - top))
    return top.float(), total.float()


def expected(run: CaseRun[Blocks]) -> dict:
    """By torch.logsumexp and torch.logaddexp in float64."""
    x = run.tree["x"].double()
    top, total = stats_of(x.amax(1), torch.logsumexp(x, 1))
    tops = [run.tree[f"{side}_top"].double() for side in ("left", "right")]
    logs = [one + run.tree[f"{side}_total"].double().log() for one, side in zip(tops, ("left", "right"))]
    merged_top, merged_total = stats_of(torch.maximum(*tops), torch.logaddexp(*logs))
    return {"top": top, "total": total, "merged_top": merged_top, "merged_total": merged_total}


def held_bytes(run: CaseRun[Blocks]) -> float:
    """So many blocks, and some numbers for each row."""
    return 4 * run.case.n_rows * (BLOCKS_HELD * max(run.case.widths) + 16)


def _widths(case: Blocks) -> str:
    """ "1, 30, 7 and 2 columns", or "8 columns" where all blocks are alike."""
    *first, last = map(str, case.widths if len(set(case.widths)) > 1 else case.widths[:1])
    return f"{', '.join(first)} and {last} columns" if first else f"{last} columns"


ONLINE_SOFTMAX = Oracle(
    id="13-online-softmax",
    call=lambda run: (
        f"softmax_stats({len(run.case.widths)} {run.case.dtype} block{'s' * (len(run.case.widths) > 1)} of "
        f"{run.case.n_rows} rows and {_widths(run.case)}); merge_stats(first, second) of 12 rows"
    ),
    places={
        "top": "top of softmax_stats",
        "total": "total of softmax_stats",
        "merged_top": "top of merge_stats",
        "merged_total": "total of merge_stats",
    },
    expect=expected,
    # float32 exponentials, and sums of them in another order.
    tolerance=Tolerance(rtol=1e-4, atol=1e-6),
    judge=(inputs_untouched,),
    budgets=(
        Budget(
            "peak_bytes",
            held_bytes,
            "More than a few blocks are held at once: look at each block when it comes, keep a maximum and a sum for "
            "each row, and nothing of the block.",
        ),
    ),
    diagnose=HINTS,
)
