"""Lab 98, second half."""

from __future__ import annotations

import torch

from labkit.check import inputs_untouched
from labkit.spec import Budget, Oracle, Tolerance


def _sums(case, tree):
    total = torch.stack([part["x"] for part in tree["ranks"]]).sum(0)
    return {"ranks": [{"out": total} for _ in range(case.n)]}


PROGRAM = Oracle(id="98-program")
SUM = Oracle(
    id="98-sum",
    expect=_sums,
    judge=(inputs_untouched,),
    tolerance=Tolerance(rtol=1e-4, atol=1e-5),
    budgets=(
        Budget("bytes_total", lambda case, tree: 2 * (case.n - 1) * 4 * case.size, "Send less."),
        Budget("rounds", lambda case, tree: 2 * (case.n - 1), "Take fewer rounds."),
    ),
)
ROOM = Oracle(
    id="98-room",
    expect=lambda case, tree: {"ranks": [{"out": torch.stack([p["x"].max() for p in tree["ranks"]]).max()}] * case.n},
    budgets=(Budget("peak_bytes", lambda case, tree: case.size // 2 + 4096, "Take it in blocks."),),
)
