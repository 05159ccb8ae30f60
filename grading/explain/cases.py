"""Look at one student's exercise again, case by case: what went in, what was due, what came back, what was measured.

Without a run it works from the stored verdicts, and draws the inputs of a failing case anew from the course's secret.
With a run the answers are run once more, isolated as when they were graded. Nothing is stored and no grade changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from grading.hidden import Secret, hidden_of
from grading.isolation import Tier
from grading.isolation.sandbox import Sandbox
from grading.supervisor.apart import run_all
from grading.supervisor.cases import CaseSet, hidden_cases, public_cases
from grading.supervisor.job import Job
from grading.supervisor.kernels import without_compiled
from grading.supervisor.own_time import verdict_limit
from grading.supervisor.run import preload_of
from grading.supervisor.transcript import Transcript
from labkit import exercises
from labkit.check.judge import judge, mismatch_of, run_of
from labkit.check.verdict import Verdict
from labkit.check.words import case_in_words
from labkit.limits import OverLimit
from labkit.observe import known_settings
from labkit.oracles import oracle_of
from labkit.spec import CaseRun, Exercise, Observation, Tree

UNKNOWN = object()
"""Where a tree is not known: what came back is kept for no graded run."""


@dataclass(frozen=True)
class FailingCase:
    """One failing case, and why it fails. got is UNKNOWN without a run, expected None where properties say it all.

    n counts from 1, of n_cases. place: the path and index of the first wrong element, where there is one.
    """

    n: int
    n_cases: int
    case: str
    rows: tuple[tuple[str, str], ...]
    hint: str | None
    inputs: Tree
    expected: Tree = None
    got: Tree = UNKNOWN
    place: tuple[str, tuple[int, ...] | None] | None = None
    budgets: tuple[tuple[str, float, float, str], ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)


def cases_of(job: Job, exercise_id: str) -> tuple[CaseSet, CaseSet]:
    """The public and the hidden cases of this job, with their inputs."""
    exercise = exercises.find(exercise_id)
    secret = Secret(job.course_key, job.lab, job.student, job.attempt)
    return public_cases(exercise), hidden_cases(exercise, secret)


def stored_failure(exercise: Exercise, verdict: Verdict, cases: CaseSet, is_hidden: bool) -> list[FailingCase]:
    """The failing case that a stored verdict names, with its inputs; nothing where it names none."""
    named, oracle = dict(verdict.rows).get("case"), oracle_of(exercise.id)
    for index, inputs in enumerate(cases.inputs):
        if verdict.passed or named != case_in_words(oracle, Observation(inputs.case, inputs.tree)):
            continue
        expected = _expected(_as_judged(exercise, Observation(inputs.case, inputs.tree), is_hidden))
        return [FailingCase(index + 1, len(cases.inputs), named, verdict.rows, None, inputs.tree, expected)]
    return []


def run_again(
    job: Job, tier: Tier, public: Mapping[str, CaseSet], hidden: Mapping[str, CaseSet]
) -> tuple[Transcript, Transcript]:
    """What happens when every exercise gets these public and these hidden cases, whether it passes or not.

    Raises InfrastructureFault when the trouble is ours.
    """
    # With what it had when it was graded: what is loaded late costs memory that a budget counts.
    with Sandbox(tier, preload=preload_of(job)) as sandbox:
        shown = run_all(sandbox, job.steps, public)
        steps = [step for step in job.steps if not (step.cell_id in shown.cells and shown.cells[step.cell_id].skipped)]
        return shown, run_all(sandbox, steps, hidden)


def failing_cases(exercise: Exercise, runs: Sequence[Observation], n_cases: int, is_hidden: bool) -> list[FailingCase]:
    """Every failing one of the cases that were run, each judged by itself."""
    expect, oracle = _own_expect(exercise, is_hidden), without_compiled(oracle_of(exercise.id))
    failing = []
    for index, run in enumerate(runs):
        try:
            with verdict_limit():
                verdict = judge(exercise, oracle, [run], expect, n_cases=1)
                as_judged = run_of(oracle, run, expect)
                expected = None if run.trouble else _expected(as_judged)
                found = None if run.trouble or expected is None else mismatch_of(oracle, as_judged)
        except (Exception, OverLimit) as error:
            # As when it was graded: what came back may be of any kind.
            rows = (("problem", f"it could not be judged ({type(error).__name__})"),)
            verdict, expected, found = Verdict(exercise.id, "suspected", 0.0, "", rows), None, None
        if verdict.passed:
            continue
        failing.append(
            FailingCase(
                index + 1,
                n_cases,
                case_in_words(oracle, run),
                verdict.rows,
                verdict.hint,
                run.tree,
                expected,
                UNKNOWN if run.trouble else run.got,
                (found.path, found.index) if found else None,
                verdict.budgets,
                run.measured,
            )
        )
    return failing


def _own_expect(exercise: Exercise, is_hidden: bool) -> Callable[[CaseRun], Tree] | None:
    """What stands in for the oracle's expectation on these cases."""
    return hidden_of(exercise.id).expect if is_hidden else None


def _as_judged(exercise: Exercise, observation: Observation, is_hidden: bool) -> CaseRun:
    return run_of(oracle_of(exercise.id), observation, _own_expect(exercise, is_hidden))


def _expected(run: CaseRun) -> Tree:
    if run.expect is None:
        return None
    with known_settings():
        return run.expected
