"""Properties that hold for many exercises, for `Oracle.judge`: each takes one Observation and says what is wrong.

A property may carry a `hint`, shown when it fails. Comparing with an expected tree is `diff`'s business.
"""

from __future__ import annotations

from labkit.spec import Observation, Tree
from labkit.store import part_of_job
from labkit.tree import leaves, part_of, same


def inputs_untouched(run: Observation) -> str | None:
    """The answer left its inputs as they were, on every rank where there are several."""
    if same(run.tree, run.back):
        return None
    if isinstance(run.back, dict) and run.back.keys() == {"jobs"}:
        before = part_of_job(run.tree)
        changed = [back for back in run.back["jobs"] if back is not None and not same(before, back)]
        return f"the input `{_first_change(before, changed[0])}` was changed in place" if changed else None
    if isinstance(run.back, dict) and run.back.keys() == {"ranks"} and run.got.keys() == {"ranks"}:
        backs, where = run.back["ranks"], " on rank {}"
        if len(backs) != len(run.got["ranks"]):
            return "the inputs of some ranks did not come back"
    else:
        backs, where = [run.back], ""
    for rank, back in enumerate(backs):
        before = part_of(run.tree, rank) if where else run.tree
        if not same(before, back):
            return f"the input `{_first_change(before, back)}` was changed in place{where.format(rank)}"
    return None


def _first_change(tree: Tree, back: Tree) -> str:
    before, after = dict(leaves(tree)), dict(leaves(back))
    names = [name for name in before if name not in after or not same(before[name], after[name])]
    # Of several ranks each has its own part under "mine", which its answer never saw.
    return names[0].removeprefix("mine.") if names else "?"


inputs_untouched.hint = (
    "Work on a copy. Operations whose name ends in an underscore, `+=` and assignments to a slice write into the "
    "tensor itself, and `.float()` or `.to(...)` returns the same tensor when there is nothing to convert."
)
