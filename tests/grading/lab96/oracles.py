"""Lab 96, second half."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.spec import Budget, Oracle
from tests.grading.lab96.exercises import SIZE


def _total(run):
    return {"jobs": [None, {"out": int(sum(data.long().sum() for data in run.tree["files"].values()))}]}


PROGRAM = Oracle(id="96-program")
SUM = Oracle(
    id="96-sum",
    expect=_total,
    judge=(inputs_untouched,),
    # The state is some bytes, and the file at which the first job was killed is read again.
    budgets=(Budget("read_bytes", lambda run: (run.case.n + 1) * SIZE + 200, "Read each file once."),),
)
