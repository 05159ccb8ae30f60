"""Grade the submissions of one lab: each is prepared when its turn comes, run, stored, and written in small batches.

Whatever ends a run, the next goes on where it was: a stored result is not made again, a written grade not written
again. Which process runs a job, and how a grade gets into the gradebook, is other modules' business.
"""

from __future__ import annotations

import contextlib
import errno
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grading.course import Course
from grading.errors import UserError
from grading.files import Unreadable
from grading.gradebook.extensions import waiting_for
from grading.gradebook.provenance import RecordedBasis, changes_since, extended_until, recorded_basis
from grading.gradebook.scores import Scores
from grading.gradebook.writer import GradedSubmission, Writer, open_writer
from grading.intake.store import archive_submission
from grading.isolation import Tier, isolates, select_tier
from grading.isolation.faults import InfrastructureFault
from grading.log import Log
from grading.pipeline.display import Display, open_display
from grading.pipeline.entries import facts_of
from grading.pipeline.extending import note_extensions
from grading.pipeline.failure import ungraded_by
from grading.pipeline.interrupt import Interrupted, stop_on_interrupt
from grading.pipeline.stream import JobStream, run_all
from grading.pipeline.tally import Tally
from grading.results import Ungraded, read_result, save_result, save_ungraded
from grading.submissions import Prepared, attempt_of, prepare
from grading.supervisor.result import SubmissionResult

BATCH = 16
HOLD_S = 1.0
"""A result waits for its batch no longer than this."""

MANY = 8
"""So many faults of ours in a row are one fault, which no further submission will escape."""

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True)
class RunSummary:
    """What a run yielded: who got no grade, and the numbers.

    RunSummary([Ungraded("bob", "unreadable", "…")], Tally(n_submissions=24, n_new=23, n_ungraded=1, …))

    problems: what is wrong with the course's extensions, in sentences. remarks: what may be.
    """

    ungraded: list[Ungraded]
    tally: Tally
    problems: Sequence[str] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class _Reason:
    """Why a submission is graded now: the basis of its new grade, and what of that changed."""

    basis: dict[str, str]
    changes: list[str]
    is_new: bool


def grade_lab(
    course: Course, lab: str, students: list[str], workers: int, isolation: str, cluster: str | None = None
) -> RunSummary:
    """Grade these students' submissions of a lab.

    isolation: a tier's name or "auto", chosen here, or on each host of the cluster. Raises UserError where nothing can
    be graded, and Interrupted after Ctrl-C, when what was in flight is written.
    """
    tier = select_tier(isolation) if cluster is None else None
    name = isolation if tier is None else tier.name
    with course.locked(), open_writer(course, lab, name) as writer, open_display(lab, len(students)) as display:
        course.key()
        with stop_on_interrupt(display.say, display.close) as stop:
            return _LabRun(course, lab, name, writer, display, stop).grade(students, workers, tier, cluster)


class _LabRun:
    """One run: what is on its way, and what came of it."""

    def __init__(
        self, course: Course, lab: str, isolation: str, writer: Writer, display: Display, stop: threading.Event
    ) -> None:
        self._course = course
        self._lab = lab
        self._isolation = isolation
        self._writer = writer
        self._display = display
        self._stop = stop
        self._log = Log(course)
        self._reasons: dict[str, _Reason] = {}
        self._batch: list[GradedSubmission] = []
        self._batch_began = 0.0
        self._tried: list[str] = []
        self._ungraded: list[Ungraded] = []
        self._n_faults_in_a_row = 0

    def grade(self, students: list[str], workers: int, tier: Tier | None, cluster: str | None) -> RunSummary:
        """Grade them all, or as many as there is time for until somebody stops the run."""
        self._tally = tally = Tally(len(students))
        self._log.append(
            "run began", lab=self._lab, isolation=self._isolation, workers=workers, submissions=len(students)
        )
        extensions, self._problems = note_extensions(self._course, self._lab, self._writer, self._log)
        self._remarks = waiting_for(extensions, self._lab, {*students, *self._course.students(self._lab)})
        stream = JobStream(
            workers,
            cluster,
            self._isolation,
            tier,
            self._on_result,
            self._on_tick,
            self._stop.is_set,
            owes_to_others=_owes_to_others,
        )
        ended = "interrupted"
        try:
            run_all(stream, self._to_run(students))
            self._flush()
            ended = "interrupted" if self._stop.is_set() else "run ended"
        finally:
            # Where the disk is full, its own error is on the way already.
            with contextlib.suppress(OSError):
                save_ungraded(self._course, self._lab, self._tried, self._ungraded)
                counts = {"graded": tally.n_graded, "unchanged": tally.n_unchanged, "ungraded": tally.n_ungraded}
                self._log.append(ended, lab=self._lab, left=tally.n_left, **counts)
        if tally.n_left:
            done = f"{tally.n_submissions - tally.n_left} of {tally.n_submissions} are done and {tally.n_left} are left"
            raise Interrupted(f"stopped: {done}; run the same command again to go on")
        return RunSummary(self._ungraded, tally, self._problems, self._remarks)

    def _to_run(self, students: list[str]) -> Iterator[Prepared]:
        """The submissions that have to be run; what has a result or a grade already is dealt with on the way."""
        for student in students:
            if self._stop.is_set():
                return
            try:
                prepared = self._prepared(student)
                stored = prepared and read_result(prepared.result_path, may_be_none=not isolates(self._isolation))
            except Unreadable as error:
                self._fail(Ungraded(student, "unreadable", str(error)))
                continue
            except Exception as error:
                _raise_if_disk(error)
                self._fail(ungraded_by(student, error))
                continue
            if prepared is None:
                self._tried.append(student)
                self._tally.n_unchanged += 1
                self._display.unchanged()
            elif stored is None:
                yield prepared
            else:
                self._gather(prepared, stored)

    def _prepared(self, student: str) -> Prepared | None:
        """The submission, ready to be run, or None where its grade stands.

        Raises Unreadable for what is the student's to mend; whatever else is raised is ours.
        """
        old = recorded_basis(self._course.autograded(self._lab, student))
        if self._stands(student, old):
            return None
        prepared = prepare(self._course, self._lab, self._lab, student)
        basis, changes = self._changes(student, old, prepared.job.attempt)
        if archive_submission(self._course, self._lab, student) != prepared.job.attempt:
            raise Unreadable("the file was replaced while it was read: run the same command again")
        self._reasons[student] = _Reason(basis, changes, is_new=old.job is None)
        return prepared

    def _stands(self, student: str, old: RecordedBasis) -> bool:
        """Whether the written grade has the basis that it would have today.

        That is read from digests: neither the notebook nor what the lab's exercises declare is looked into, which would
        take a second for PyTorch and more for a class.
        """
        if old.job is None or self._writer.is_unfinished(student):
            return False
        try:
            attempt = attempt_of(self._course, self._lab, student)
        except Unreadable:
            # It is prepared, then, which says why it cannot be read.
            return False
        return not self._changes(student, old, attempt)[1]

    def _changes(self, student: str, old: RecordedBasis, attempt: str) -> tuple[dict[str, str], list[str]]:
        """The basis of this attempt's grade, and the names of what in it differs from the written grade's."""
        basis = self._writer.basis.of(self._course, self._lab, student, attempt)
        has_row = student in self._writer.basis.extensions
        return basis, changes_since(old, basis, has_row, may_be_none=not isolates(self._isolation))

    def _on_result(self, prepared: Prepared, outcome: dict | BaseException) -> None:
        if isinstance(outcome, BaseException):
            self._fail(ungraded_by(prepared.job.student, outcome))
            return
        try:
            saved = save_result(self._course, prepared.job, outcome, may_be_none=not isolates(self._isolation))
        except InfrastructureFault as error:
            self._fail(ungraded_by(prepared.job.student, error))
            return
        self._n_faults_in_a_row = 0
        self._gather(prepared, saved)

    def _gather(self, prepared: Prepared, result: SubmissionResult) -> None:
        if not self._batch:
            self._batch_began = time.monotonic()
        self._batch.append(GradedSubmission(prepared, result, self._reasons[prepared.job.student].basis))
        if len(self._batch) >= (BATCH if self._writer.is_direct else 1):
            self._flush()

    def _on_tick(self) -> None:
        if self._batch and time.monotonic() - self._batch_began > HOLD_S:
            self._flush()

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        self._write(batch)

    def _write(self, batch: list[GradedSubmission]) -> None:
        try:
            self._writer.save(batch, self._log_grade)
        except Exception as error:
            _raise_if_disk(error)
            if len(batch) == 1:
                reason = f"its grade could not be written: {error}"
                self._fail(Ungraded(batch[0].student, "infrastructure", reason))
                return
            # What one of them brings about must not keep the others from their grades.
            for graded in batch:
                self._write([graded])
            return
        for graded in batch:
            self._finish(graded)

    def _log_grade(self, graded: GradedSubmission, scores: Scores, penalty: float) -> None:
        result = graded.result
        stored = self._course.result(self._lab, result.key).read_bytes()
        facts = facts_of(graded.prepared, result, stored, scores, penalty, extended_until(graded.basis))
        self._log.append("graded", **{**facts, "job": result.key, "changed": self._reasons[graded.student].changes})

    def _finish(self, graded: GradedSubmission) -> None:
        try:
            self._writer.finish(graded)
        except OSError as error:
            _raise_if_disk(error)
            reason = f"its graded notebook could not be put in its place: {error}"
            self._fail(Ungraded(graded.student, "infrastructure", reason))
            return
        reason = self._reasons.pop(graded.student)
        outcomes = [item.outcome for item in graded.result.exercises.values()]
        self._n_faults_in_a_row = 0
        self._tried.append(graded.student)
        self._tally.graded(reason.changes, outcomes, reason.is_new)
        self._display.graded(self._tally)

    def _fail(self, failed: Ungraded) -> None:
        self._reasons.pop(failed.student, None)
        self._log.append(
            "ungraded", lab=self._lab, student=failed.student, outcome=failed.outcome, reason=failed.reason
        )
        self._tried.append(failed.student)
        self._ungraded.append(failed)
        self._tally.n_ungraded += 1
        self._display.graded(self._tally)
        if failed.outcome == "infrastructure":
            self._n_faults_in_a_row += 1
        if self._n_faults_in_a_row >= MANY:
            text = f"{MANY} submissions in a row could not be graded, the last one because of: {failed.reason}"
            raise UserError(text, "fix that and run the same command again; grades so far are kept")


def _owes_to_others(result: dict) -> bool:
    """As the result says; what is none is refused where it would be stored."""
    try:
        return SubmissionResult.from_json(result).owes_to_others
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def _raise_if_disk(error: Exception) -> None:
    """Trouble that the next submission would have as well is not blamed on this one."""
    if isinstance(error, UserError) or (isinstance(error, OSError) and error.errno in _DISK):
        raise error
