"""Judge what was observed: compare with the oracle, test properties and budgets, diagnose the mistake.

A pure function of the declaration and the observations: nothing of the student's runs here, so the local check and
the grader's supervisor share it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labkit.check.diagnosis import explanation, fact, first_hint, hint_on_form, strip, unwritten_memory
from labkit.check.on_error import hint_on_error
from labkit.check.points import gained
from labkit.check.text import over_budget
from labkit.check.verdict import Verdict
from labkit.check.words import case_in_words, full_size_in_words, what_is_wrong
from labkit.compare import Mismatch, compare
from labkit.spec import Budget, CaseRun, Exercise, Observation, Oracle, Outcome, Tolerance, Tree, Trouble
from labkit.tree import plain
from labkit.units import in_unit

_LIMITS = {"wall": "limit", "cpu": "limit", "memory": "limit", "died": "limit"}

_HOST_HINT = (
    "Pass the tensor itself to the kernel, and load the number there. The host may depend on shapes, not on values."
)
_BLOCK_HINT = (
    "It runs at small sizes only. At this size a block has to be a part of a row or of a sum, and each program loops "
    "over the parts."
)
_STORE_HINT = (
    "Not every place was stored to. Look at the grid, which has to be rounded up, and at the offsets and the mask of "
    "the store."
)
_CUDA_STORE_HINT = (
    "Not every place was stored to: see which threads come to the store, under which condition, and at which index."
)


def judge(
    exercise: Exercise,
    oracle: Oracle,
    observations: Sequence[Observation],
    expect: Callable[[CaseRun], Tree] | None = None,
    n_cases: int | None = None,
) -> Verdict:
    """The verdict on an exercise, from the runs of its cases in order.

    `expect` replaces the oracle's own expectation (hidden cases may have one that students must not read). Fewer
    observations than `n_cases` mean that the run was cut short, which the last observation's trouble explains. One of
    `Exercise.full_size` is no case: it is looked at where all cases pass.
    """
    runs = [run_of(oracle, one, expect) for one in observations if not is_full_size(exercise, one)]
    n_cases = len(runs) if n_cases is None else n_cases
    failures = [failure for run in runs if (failure := _fault(exercise, oracle, run))]
    n_passed = len(runs) - len(failures)
    if not failures and n_passed == n_cases:
        for holds in oracle.judge_all:
            if problem := _problem(holds, runs):
                hint = getattr(holds, "hint", None) or first_hint(oracle, runs)
                failures.append(_Failure("failed", (("problem", problem),), hint))
                break
    if not failures and n_passed < n_cases:
        failures.append(_Failure("failed", (("problem", "not every case was run"),), None))
    if not failures:
        at_full_size = [one for one in observations if is_full_size(exercise, one)]
        failures = [found for one in at_full_size if (found := _full_size_fault(exercise, oracle, one))]
    budgets = _tightest(oracle, runs)
    if failures:
        first, hint = failures[0], _hint(oracle, failures)
        note = fact(oracle, first.wrong) if first.wrong and not hint else None
        played = strip(oracle, first.wrong) if first.wrong else None
        more = [("played", played)] * bool(played) + [("note", note)] * bool(note)
        return Verdict(
            exercise.id,
            first.outcome,
            0.0,
            _headline(exercise, first, n_passed, n_cases),
            (*first.rows, *more),
            hint,
            budgets,
            n_passed,
            n_cases,
        )
    cases = "its case passes" if n_cases == 1 else f"all {n_cases} cases pass"
    score = 1.0 if oracle.score is None else _score(oracle, runs)
    record = oracle.record(runs) if oracle.record and score > 0 else None
    rows = oracle.earned(runs) if oracle.earned and score > 0 else ()
    if score == 1.0:
        headline = f"{exercise.id}: {cases}, {gained(score, exercise.points)}."
        return Verdict(exercise.id, "passed", score, headline, rows, None, budgets, n_passed, n_cases, record)
    outcome: Outcome = "partial" if score > 0 else "failed"
    headline = f"{exercise.id}: {cases}, but there is more to gain: {gained(score, exercise.points)}."
    hint = first_hint(oracle, runs)
    return Verdict(exercise.id, outcome, score, headline, rows, hint, budgets, n_passed, n_cases, record)


def _score(oracle: Oracle, runs: Sequence[CaseRun]) -> float:
    try:
        score = float(oracle.score(runs))
    except Exception:
        # As for a property: a result that cannot even be read earns nothing.
        return 0.0
    return 0.0 if math.isnan(score) else min(max(score, 0.0), 1.0)


@dataclass(frozen=True)
class _Failure:
    """Why a case does not pass.

    hint: what is said where nothing says more. wrong: the run whose value is to be explained, which `hint` does not.
    """

    outcome: Outcome
    rows: tuple[tuple[str, str], ...]
    hint: str | None
    wrong: CaseRun | None = None


def _hint(oracle: Oracle, failures: Sequence[_Failure]) -> str | None:
    """What explains every failing case, or else what the first of them says of itself."""
    if failures[0].wrong is None:
        return failures[0].hint
    return explanation(oracle, [failure.wrong for failure in failures if failure.wrong]) or failures[0].hint


def _fault(exercise: Exercise, oracle: Oracle, run: CaseRun) -> _Failure | None:
    if run.trouble:
        return _from_trouble(oracle, run)
    case_row = _case_row(oracle, run)
    mismatch = mismatch_of(oracle, run)
    if mismatch:
        rows = case_row + _shown(oracle, run, mismatch) + _mismatch_rows(oracle, mismatch)
        if nothing := unwritten_memory(mismatch, run):
            hint = _STORE_HINT if "store_bytes" in run.measured else _CUDA_STORE_HINT
            return _Failure("failed", (*rows, ("note", nothing)), hint, run)
        return _Failure("failed", rows, hint_on_form(mismatch, run.got), run)
    for holds in oracle.judge:
        if problem := _problem(holds, run):
            hint = getattr(holds, "hint", None)
            return _Failure("failed", (*case_row, ("problem", problem)), hint, None if hint else run)
    return _over_budget(oracle.budgets, run, case_row)


def _full_size_fault(exercise: Exercise, oracle: Oracle, observed: Observation) -> _Failure | None:
    """What is wrong with the launches at full size, of which there are no values."""
    run = run_of(oracle, observed)
    case_row = (("case", f"{full_size_in_words(exercise, oracle)}: launches are recorded and compiled, but not run"),)
    if run.trouble:
        limit = _LIMITS.get(run.trouble.kind, "failed")
        rows = (*case_row, ("problem", run.trouble.text), *([("at", run.trouble.where)] if run.trouble.where else []))
        return _Failure(limit, rows, _HOST_HINT if "HostReadsTensor" in run.trouble.text else _BLOCK_HINT)
    over = _over_budget(oracle.full_size, run, case_row)
    # There is no value to be explained.
    return over and replace(over, wrong=None)


def is_full_size(exercise: Exercise, observed: Observation) -> bool:
    """Whether this is what the answer would launch at `Exercise.full_size`, and not the run of a case."""
    return exercise.full_size is not None and observed.case == exercise.full_size


def _over_budget(budgets: Sequence[Budget], run: CaseRun, case_row: tuple[tuple[str, str], ...]) -> _Failure | None:
    for budget in budgets:
        measured, limit = run.measured.get(budget.key), _limit(budget, run)
        if measured is None:
            return _Failure("failed", (*case_row, ("problem", f"no measure of {budget.key} came back")), None)
        if not (measured >= limit if budget.at_least else measured <= limit):  # a measure that is NaN keeps no budget
            rows = (
                *case_row,
                ("problem", over_budget(budget.key, budget.unit, budget.at_least)),
                ("measured", in_unit(measured, budget.unit)),
                ("at least" if budget.at_least else "budget", in_unit(limit, budget.unit)),
                *(("held", text) for text in run.held.get(budget.key, ())),
            )
            return _Failure("failed", rows, budget.hint, run)
    return None


def _problem(holds: Callable[[Any], str | None], observed: Any) -> str | None:
    """What a property says is wrong. A result that it cannot even read is wrong too."""
    try:
        return holds(observed)
    except Exception as error:
        return f"the result does not have the form that was asked for ({type(error).__name__})"


def _case_row(oracle: Oracle, run: Observation) -> tuple[tuple[str, str], ...]:
    text = case_in_words(oracle, run)
    return (("case", text),) if text else ()


def _from_trouble(oracle: Oracle, run: Observation) -> _Failure:
    trouble: Trouble = run.trouble
    if trouble.kind == "unanswered":
        # An answer stands above the stub's line, and it may be finished.
        rows = (("at", f"{trouble.where}; delete this line when your answer is complete"),) if trouble.where else ()
        return _Failure("unanswered", rows, None)
    rows = (("problem", trouble.text),)
    if trouble.where:
        rows += (("at", trouble.where),)
    if trouble.kind in ("raised", *_LIMITS):
        rows = (*_case_row(oracle, run), *rows)
    return _Failure(_LIMITS.get(trouble.kind, "failed"), rows, hint_on_error(oracle, trouble))


def _headline(exercise: Exercise, failure: _Failure, n_passed: int, n_cases: int) -> str:
    if failure.outcome == "unanswered":
        return f"{exercise.id}: not answered yet. Write your answer in the cell above, run it, then run this one."
    if n_passed == n_cases and failure.rows and failure.rows[0][0] == "case":
        return f"{exercise.id}: all cases pass, but this is for small sizes only."
    no_case_to_blame = not failure.rows or failure.rows[0][0] != "case"
    if n_cases <= 1 or n_passed >= n_cases or no_case_to_blame:
        return f"{exercise.id}: not right yet."
    if n_passed == 0:
        return f"{exercise.id}: none of the {n_cases} cases passes; this is the first."
    return f"{exercise.id}: {n_passed} of {n_cases} cases pass; this one does not."


def _mismatch_rows(oracle: Oracle, found: Mismatch) -> tuple[tuple[str, str], ...]:
    problem = what_is_wrong(oracle, found)
    if found.kind != "value":
        return (("problem", problem), ("expected", found.expected), ("got", found.got))
    if found.n_total > 1:
        problem += f"; {found.n_bad:,} of {found.n_total:,} values differ"
        if found.max_error is not None and 0 < found.max_error < math.inf:
            problem += f", the largest error is {found.max_error:.3g}"
    rows: tuple[tuple[str, str], ...] = () if problem == "wrong value" else (("problem", problem),)
    dtype = f"  ({found.dtype})" if found.dtype else ""
    rows += (("expected", found.expected + dtype), ("got", found.got))
    atol, rtol = found.tolerance.atol, found.tolerance.rtol
    parts = [f"{atol:.3g}"] * bool(atol) + [f"{rtol:.3g} x |expected|"] * bool(rtol)
    return (*rows, ("tolerance", " + ".join(parts))) if parts else rows


def _shown(oracle: Oracle, run: CaseRun, found: Mismatch) -> tuple[tuple[str, str], ...]:
    if oracle.show is None or found.kind != "value":
        return ()
    try:
        text = oracle.show(run, found.index)
    except Exception:
        # As for a hint: what came back may be of any kind.
        return ()
    return (("input", text),) if text else ()


def run_of(oracle: Oracle, observation: Observation, expect: Callable[[CaseRun], Tree] | None = None) -> CaseRun:
    """The observation as the oracle reads it; `expect` replaces the oracle's own."""
    expect = expect or oracle.expect
    return CaseRun(**vars(observation), expect=expect and (lambda run: plain(expect(run))))


def mismatch_of(oracle: Oracle, run: CaseRun) -> Mismatch | None:
    """Where what came back differs from what was expected by more than the oracle tolerates."""
    if run.expect is None:
        return None
    tolerance = oracle.tolerance
    if not isinstance(tolerance, Tolerance):
        tolerance = tolerance(run)
    return compare(run.expected, run.got, tolerance)


def _tightest(oracle: Oracle, runs: Sequence[CaseRun]) -> tuple[tuple[str, float, float, str], ...]:
    """What was spent, in the case where least was left of it. Of what there has to be at least, nothing is spent."""
    rows = []
    for budget in oracle.budgets:
        if budget.at_least:
            continue
        spent = [(run.measured[budget.key], _limit(budget, run)) for run in runs if budget.key in run.measured]
        if spent:
            measured, limit = max(spent, key=lambda pair: _share(*pair))
            rows.append((budget.key, float(measured), float(limit), budget.unit))
    return tuple(rows)


def _share(measured: float, limit: float) -> float:
    """How much of a limit was used. A limit of nothing that was kept says less than any other."""
    if limit:
        return measured / limit
    return float("inf") if measured else -1.0


def _limit(budget: Budget, run: CaseRun) -> float:
    return budget.limit(run) if callable(budget.limit) else budget.limit
