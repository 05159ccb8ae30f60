"""Properties that hold for many exercises, for `Oracle.judge`: each takes one Observation and says what is wrong.

A property may carry a `hint`, shown when it fails. Comparing with an expected tree is `diff`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def came_by(
    expected: Callable[[Observation], Sequence[tuple[str, int | None]]],
) -> Callable[[Observation], str | None]:
    """The property that ranks came by these moments (`Stage.mark`), in this order, and by no others.

    expected: run -> [(name, collectives that each rank has called by then, or None for any number), ...]. A driver
    marks what it is told to; whether the memory that was read there is that of the right moment, the collectives say.
    """

    def holds(run: Observation) -> str | None:
        wanted = list(expected(run))
        labels = [moment.label for moment in run.moments]
        if labels != [label for label, _ in wanted]:
            return f"the ranks came by {len(labels)} moments, and {len(wanted)} were to be marked, in their order"
        for moment, (label, n_calls) in zip(run.moments, wanted):
            for rank, n_called in enumerate(moment.collectives):
                if n_calls is not None and n_called != n_calls:
                    return f"{label}: rank {rank} had called {n_called} collectives by then, not {n_calls}"
        return None

    return holds


def sent_around(
    expected: Callable[[Observation], Sequence[tuple[float, float]]], hint: str
) -> Callable[[Observation], str | None]:
    """The property that ranks had sent so much by each moment, and sent so much after it, however they do it.

    expected: run -> [(least bytes by then, least bytes afterwards), ...] of all ranks together, a pair for each moment
    in order. A rank that halts earlier or later than the driver told it to has sent too little by then, or has too
    little left to send. hint: for who has sent too little by then, or in all.
    """

    def holds(run: Observation) -> str | None:
        total = run.measured.get("bytes_total", 0)
        for moment, (least, least_after) in zip(run.moments, expected(run), strict=True):
            sent = sum(moment.bytes_sent)
            if sent < least:
                return f"{moment.label}: the ranks had sent {sent:,} bytes by then, and no less than {least:,} will do"
            if total - sent < least_after:
                left = total - sent
                return f"{moment.label}: the ranks sent {left:,.0f} bytes afterwards, and {least_after:,} is the least"
        return None

    holds.hint = hint
    return holds
