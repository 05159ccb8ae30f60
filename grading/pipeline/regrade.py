"""Grade one submission anew, for a reason that is noted, with what it had before and has after side by side.

The answers run again even where nothing has changed since. Points never fall without somebody's word: where any would,
nothing is written until the lower ones are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from grading.course import Course
from grading.errors import UserError
from grading.files import Unreadable
from grading.gradebook.provenance import changes_since, extended_until, recorded_basis
from grading.gradebook.scores import Scores, scores_of
from grading.gradebook.standing import Standing
from grading.gradebook.writer import GradedSubmission, open_writer
from grading.intake.store import archive_submission
from grading.isolation import Tier, isolates, select_tier
from grading.log import Log
from grading.pipeline.entries import facts_of
from grading.pipeline.extending import note_extensions
from grading.pipeline.failure import ungraded_by
from grading.pipeline.stream import JobStream, run_all
from grading.results import save_result, save_ungraded
from grading.submissions import Prepared, prepare
from grading.supervisor.result import SubmissionResult

REFUSED = "regrade refused"


@dataclass(frozen=True)
class Regraded:
    """What a regrade found. `after` is what was written, or what would have been where `is_written` is false.

    lower: the cells that count less than before, and "the total" where that is less. changes: what of the grade's basis
    differs from the earlier grade's. problems: what is wrong with the course's extensions.
    """

    before: Standing
    after: Standing
    is_written: bool
    lower: tuple[str, ...]
    changes: tuple[str, ...]
    problems: tuple[str, ...]


def regrade(
    course: Course, lab: str, student: str, reason: str, isolation: str = "auto", accept_lower: bool = False
) -> Regraded:
    """Run this submission again and write its grade, unless that has fallen and `accept_lower` is false.

    Raises UserError where there is no grade yet, or where the submission cannot be run; then nothing has changed.
    """
    course.expect_handed_in(lab, [student])
    tier = select_tier(isolation)
    with course.locked(), open_writer(course, lab, tier.name) as writer:
        log = Log(course)
        before = writer.standing(student)
        if before is None:
            remedy = f"grade it first: python -m grading grade {course.root} {lab} --student {student}"
            raise UserError(f"{student} has no grade in {lab} yet", remedy)
        _, problems = note_extensions(course, lab, writer, log)
        prepared = _prepared(course, lab, student)
        basis = writer.basis.of(course, lab, student, prepared.job.attempt)
        old = recorded_basis(course.autograded(lab, student))
        changes = changes_since(old, basis, has_row=True, may_be_none=not isolates(tier.name))
        outcome = _run(prepared, tier)
        graded = GradedSubmission(prepared, _result(outcome), basis)
        scores = scores_of(graded.notebook())
        after = before.with_scores(scores, 0.0)
        after = before.with_scores(scores, writer.foreseen_penalty(student, after.before_penalty))
        lower = _lower(before, after)
        note = {"reason": reason, "before": before.facts(), "after": after.facts()}
        if lower and not accept_lower:
            log.append(REFUSED, lab=lab, student=student, submission=prepared.job.attempt, lower=lower, **note)
            return Regraded(before, after, False, tuple(lower), tuple(changes), tuple(problems))
        saved = save_result(course, prepared.job, outcome, may_be_none=not isolates(tier.name))
        graded = GradedSubmission(prepared, saved, basis)

        def on_saved(graded: GradedSubmission, scores: Scores, penalty: float) -> None:
            nonlocal after
            after = before.with_scores(scores, penalty)
            stored = course.result(lab, saved.key).read_bytes()
            facts = facts_of(prepared, saved, stored, scores, penalty, extended_until(basis))
            regraded = {**note, "after": after.facts()}
            log.append("graded", **{**facts, "changed": changes, "regraded": regraded})

        writer.save([graded], on_saved)
        writer.finish(graded)
        save_ungraded(course, lab, [student], [])
        return Regraded(before, after, True, tuple(_lower(before, after)), tuple(changes), tuple(problems))


def _prepared(course: Course, lab: str, student: str) -> Prepared:
    try:
        prepared = prepare(course, lab, lab, student)
        if archive_submission(course, lab, student) != prepared.job.attempt:
            raise Unreadable("the file was replaced while it was read")
        return prepared
    except Unreadable as error:
        remedy = "what was graded stands; collect it anew"
        raise UserError(f"the submission of {student} cannot be read ({error})", remedy) from error


def _run(prepared: Prepared, tier: Tier) -> dict:
    """The job's result, as `grade` has it: tried again where it was lost. Raises UserError."""
    found: list[dict | BaseException] = []
    stream = JobStream(
        1,
        None,
        tier.name,
        tier,
        lambda _prepared, outcome: found.append(outcome),
        lambda: None,
        lambda: False,
        owes_to_others=lambda _result: False,
    )
    run_all(stream, iter([prepared]))
    (outcome,) = found
    if isinstance(outcome, BaseException):
        failed = ungraded_by(prepared.job.student, outcome)
        raise UserError(f"it could not be run ({failed.outcome}: {failed.reason})", "the grade stands as it was")
    return outcome


def _result(outcome: dict) -> SubmissionResult:
    try:
        return SubmissionResult.from_json(outcome)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"what came back is no result ({error})", "the grade stands as it was") from error


def _lower(before: Standing, after: Standing) -> list[str]:
    cells = sorted({*before.auto, *after.auto})
    found = [cell for cell in cells if after.earned(cell) < before.earned(cell) - 1e-9]
    return [*found, *(["the total"] if after.total < before.total - 1e-9 else [])]
