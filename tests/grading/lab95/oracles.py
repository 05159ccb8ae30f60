"""Lab 95, second half."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.oracles.cuda import FAULTS, NO_CONFLICTS, sectors
from labkit.spec import Oracle


def _sectors(case):
    """Of each row of the result a sector for every 8 elements, and one more where it does not begin at a multiple."""
    return case.cols * (-(-case.rows // 8) + 1) + case.rows * (-(-case.cols // 8) + 1)


TRANSPOSE = Oracle(
    id="95-transpose",
    expect=lambda run: {"out": run.tree["x"].T.contiguous()},
    judge=(inputs_untouched,),
    budgets=(*sectors(lambda run: _sectors(run.case), lambda run: _sectors(run.case)), NO_CONFLICTS),
    errors=FAULTS,
)
