"""The verdict on a rerun: its results are judged like any others, and its figures are the ones that budgets go by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace as changed

from grading.supervisor.kernels.rerun import Rerun
from grading.supervisor.kernels.shown import IN_KERNELS, hint_on_operations
from labkit.check.judge import is_full_size, judge
from labkit.check.verdict import Verdict
from labkit.measures import MEASURES
from labkit.spec import CaseRun, Exercise, Oracle, Tree


def is_rerun(oracle: Oracle) -> bool:
    """Whether a budget of the exercise is judged by what a rerun measures."""
    return any(MEASURES[budget.name].witness == "rerun" for budget in oracle.budgets)


def is_compiled(oracle: Oracle) -> bool:
    """Whether a budget is on what the compiler makes of the kernels."""
    return any(MEASURES[budget.name].meter == "compiled" for budget in oracle.budgets)


def without_compiled(oracle: Oracle) -> Oracle:
    """The oracle without the budgets that only a rerun has figures for, because no student's process compiles."""
    kept = tuple(budget for budget in oracle.budgets if MEASURES[budget.name].meter != "compiled")
    return changed(oracle, budgets=kept, full_size=())


def fails_at_full_size(exercise: Exercise, verdict: Verdict) -> bool:
    """Whether all cases pass, and what would be launched at full size does not: the verdict's headline says so."""
    return exercise.full_size is not None and verdict.score == 0 and verdict.n_passed == verdict.n_cases > 0


def judge_rerun(
    exercise: Exercise,
    oracle: Oracle,
    expect: Callable[[CaseRun], Tree] | None,
    found: Rerun,
    n_cases: int,
    public_logs: Sequence[Tree],
) -> Verdict:
    """Pass or fail by the rerun alone; expect: as for `judge`. public_logs: what a hint may go by."""
    if found.outcome is not None:
        headline = f"{exercise.id}: its kernels were run again from their text, and that did not end well."
        if found.outcome == "suspected":
            headline = f"{exercise.id}: its kernels could not be run again, and a person will look at it."
        return Verdict(exercise.id, found.outcome, 0.0, headline, (("problem", found.problem),), found.hint)
    cases = [run for run in found.runs if not is_full_size(exercise, run)]
    values = judge(exercise, changed(oracle, budgets=(), score=None), cases, expect, n_cases)
    if values.score < 1:
        headline = f"{exercise.id}: its kernels, run again from their text on other inputs, do not give the result."
        hint = hint_on_operations(public_logs) if found.lost else IN_KERNELS
        left_out = f"; not run again: {', '.join(found.lost)}" if found.lost else ""
        rows = (("problem", f"what it launched does not reproduce it{left_out}"), *values.rows)
        return changed(values, outcome="failed", headline=headline, rows=rows, hint=hint)
    verdict = judge(exercise, oracle, found.runs, expect, n_cases)
    if verdict.score > 0 or fails_at_full_size(exercise, verdict):
        return verdict
    return changed(verdict, headline=f"{exercise.id}: its kernels, run again, do not keep within their budgets.")
