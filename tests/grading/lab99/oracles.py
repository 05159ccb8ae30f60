"""Lab 99, second half."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.spec import Budget, Hint, Oracle, Tolerance

DOUBLE = Oracle(
    id="99-double",
    expect=lambda run: {"out": run.tree["x"] * 2},
    judge=(inputs_untouched,),
    diagnose=(Hint(lambda run: (run.got["out"] == run.tree["x"]).all(), "This is the input itself."),),
)
SLOW = Oracle(id="99-slow", expect=lambda run: {"out": run.tree["x"]})
SHARE = Oracle(
    id="99-share",
    judge=(lambda run: None if "words" in run.got["words"] else "the text lacks its words",),
    score=lambda runs: float(runs[0].got["share"]),
)
MEASURED = Oracle(
    id="99-measured",
    expect=lambda run: {"out": run.tree["x"].sum()},
    budgets=(Budget("peak_bytes", 20_000, "A copy of everything is too much."),),
    diagnose=(Hint(lambda run: "float64" in run.held["peak_bytes"][0], "The copy is in float64, too."),),
)
ALL_REDUCE = Oracle(
    id="99-all-reduce",
    expect=lambda run: {"ranks": [{"out": run.tree["x"].sum(0)}] * 3},
    judge=(inputs_untouched,),
    tolerance=Tolerance(rtol=1e-5, atol=1e-6),
    budgets=(Budget("bytes_sent", lambda run: 4 * 4 * -(-run.case.n // 3), "Send one part at a time."),),
)
