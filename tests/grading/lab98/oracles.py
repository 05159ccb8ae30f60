"""Lab 98, second half."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.spec import Budget, Oracle, Tolerance


def _sums(run):
    total = torch.stack([part["x"] for part in run.tree["ranks"]]).sum(0)
    return {"ranks": [{"out": total} for _ in range(run.case.n)]}


PROGRAM = Oracle(id="98-program")
SUM = Oracle(
    id="98-sum",
    expect=_sums,
    judge=(inputs_untouched,),
    tolerance=Tolerance(rtol=1e-4, atol=1e-5),
    budgets=(
        Budget("bytes_total", lambda run: 2 * (run.case.n - 1) * 4 * run.case.size, "Send less."),
        Budget("rounds", lambda run: 2 * (run.case.n - 1), "Take fewer rounds."),
    ),
)
ROOM = Oracle(
    id="98-room",
    expect=lambda run: {"ranks": [{"out": torch.stack([p["x"].max() for p in run.tree["ranks"]]).max()}] * run.case.n},
    budgets=(Budget("peak_bytes", lambda run: run.case.size // 2 + 4096, "Take it in blocks."),),
)
