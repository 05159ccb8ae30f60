"""Write grades the way nbgrader's autograding does, many in one database session.

The rows, the graded notebooks and the files beside them are those that `nbgrader autograde` would leave (a test
compares them). Where the course's configuration changes autograding, nbgrader's own does the writing. Nothing is run
or judged here.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from nbformat import NotebookNode
from nbgrader.api import Gradebook, SubmittedAssignment, SubmittedNotebook
from nbgrader.apps import NbGraderAPI
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.preprocessors import AssignLatePenalties
from traitlets.config import Config

from grading.course import Course
from grading.errors import UserError
from grading.gradebook.autograding import is_standard_autograding
from grading.gradebook.drafts import draft_of, make_draft, publish_draft
from grading.gradebook.extensions import (
    Change,
    Extensions,
    due_date,
    extend,
    interval_of,
    keep,
    problems_with,
    read_extensions,
)
from grading.gradebook.outputs import write_results
from grading.gradebook.provenance import LabBasis, extension_text, lab_basis, recorded_basis
from grading.gradebook.scores import Scores, scores_of
from grading.gradebook.session import open_for_writing, patiently
from grading.gradebook.standing import Standing, standing_of
from grading.nbgrader_api import expect_success, open_api
from grading.rebuild import rebuilt_notebook
from grading.submissions import Prepared
from grading.supervisor.result import SubmissionResult


@dataclass(frozen=True)
class GradedSubmission:
    """A submission with its result and the basis of its grade, ready to be written.

    GradedSubmission(Prepared(…), SubmissionResult("5f3c…", "02_float_formats", "ada", exercises={…}, …),
                     basis={"submission": "9c1e…", "lab": "0c4f…", "due date": "2026-03-02 12:00:00", …})
    """

    prepared: Prepared
    result: SubmissionResult
    basis: dict[str, str]

    @property
    def student(self) -> str:
        return self.prepared.job.student

    def notebook(self) -> NotebookNode:
        """The rebuilt notebook with its results."""
        rebuilt = rebuilt_notebook(self.prepared.template, self.prepared.merged)
        return write_results(rebuilt, self.prepared, self.result, self.basis)


OnSaved = Callable[[GradedSubmission, Scores, float], None]
"""Called for every grade that is in the gradebook now, with the late penalty in points."""


class Writer:
    """The one writer of a lab's grades. Use `open_writer`."""

    def __init__(self, course: Course, lab: str, api: NbGraderAPI, gradebook: Gradebook) -> None:
        self._course = course
        self._lab = lab
        self._api = api
        self._gradebook = gradebook
        self._extensions = read_extensions(course)
        self.basis: LabBasis = patiently(lambda: lab_basis(course, lab, gradebook))
        self._names = patiently(self._cell_names)
        self._require_released()
        # As CheckCellMetadata does of each notebook; what is rebuilt has its metadata from the template alone.
        MetadataValidator().validate_nb(course.template(lab).notebook)
        self.is_direct = (
            is_standard_autograding(api.config) and not api.coursedir.groupshared and self._is_only_notebook()
        )
        gradebook.db.rollback()

    def extend(self) -> tuple[Extensions, list[Change], list[str]]:
        """Bring the course's extensions into the gradebook; returns them, what changed, and what is wrong with them.

        To be called before the first grade, whose basis they are part of.
        """
        course, lab, extensions = self._course, self._lab, self._extensions
        due = patiently(lambda: due_date(self._gradebook, lab))
        changes = patiently(self._extend, self._gradebook.db.rollback)
        keep(course, lab, extensions)
        granted = {name: extension_text(due, interval_of(found, due)) for name, found in extensions.of(lab).items()}
        self.basis = replace(patiently(lambda: lab_basis(course, lab, self._gradebook)), granted=granted)
        self._gradebook.db.rollback()
        return extensions, changes, problems_with(extensions, lab, due)

    def _extend(self) -> list[Change]:
        changes = extend(self._course, self._lab, self._gradebook, self._extensions)
        self._gradebook.db().commit_batch()
        return changes

    def standing(self, student: str) -> Standing | None:
        """The student's grade as the gradebook has it; None where there is none."""
        found = patiently(lambda: standing_of(self._gradebook, self._lab, student))
        self._gradebook.db.rollback()
        return found

    def foreseen_penalty(self, student: str, score: float) -> float:
        """The late penalty that a score would get if it were saved now, in points."""
        submission = self._submission(student)
        try:
            (notebook,) = submission.notebooks
            return float(self._penalty(submission, notebook, score) or 0.0)
        finally:
            self._gradebook.db.rollback()

    def is_unfinished(self, student: str) -> bool:
        """Whether an earlier run ended while it wrote this student's grade."""
        return draft_of(self._course, self._lab, student).exists()

    def save(self, batch: Sequence[GradedSubmission], on_saved: OnSaved) -> None:
        """Bring these grades into the gradebook, all or none. They are written once finished.

        Raises UserError where the gradebook cannot be used, or OSError. Whatever else is raised is about one of them.
        """
        if not self.is_direct:
            for graded in batch:
                self._save_by_nbgrader(graded, on_saved)
            return
        notebooks = [graded.notebook() for graded in batch]
        scores = [scores_of(notebook) for notebook in notebooks]
        for graded, notebook in zip(batch, notebooks, strict=True):
            make_draft(self._course, self._lab, graded.student, notebook, self._api.coursedir.ignore)
        penalties = patiently(lambda: self._save(batch, scores), self._gradebook.db.rollback)
        for graded, score, penalty in zip(batch, scores, penalties, strict=True):
            on_saved(graded, score, penalty)

    def finish(self, graded: GradedSubmission) -> None:
        """Let this student's folder say that the saved grade is written. Raises OSError; then it is unfinished."""
        if self.is_direct:
            publish_draft(self._course, self._lab, graded.student)
        else:
            shutil.rmtree(draft_of(self._course, self._lab, graded.student))

    def _save_by_nbgrader(self, graded: GradedSubmission, on_saved: OnSaved) -> None:
        # There is no draft, but its folder says for as long that the writing did not end.
        draft_of(self._course, self._lab, graded.student).mkdir(parents=True, exist_ok=True)
        call = functools.partial(self._api.autograde, self._lab, graded.student, force=True, create=True)
        patiently(lambda: expect_success(self._course, call()))
        submission = self._gradebook.find_submission(self._lab, graded.student)
        penalty = float(submission.late_submission_penalty or 0.0)
        self._gradebook.db.rollback()
        on_saved(graded, scores_of(graded.notebook()), penalty)

    def _save(self, batch: Sequence[GradedSubmission], scores: Sequence[Scores]) -> list[float]:
        """Into the database; returns the late penalties in points."""
        session = self._gradebook.db()
        try:
            submissions = [self._submission(graded.student) for graded in batch]
            saved = [
                self._save_scores(submission, score, self._was_graded_before(graded))
                for submission, graded, score in zip(submissions, batch, scores, strict=True)
            ]
            session.commit_batch()
            # A penalty may ask the gradebook for the points, so they have to be there before.
            penalties = [
                self._penalty(submission, notebook) for submission, notebook in zip(submissions, saved, strict=True)
            ]
            for notebook, penalty in zip(saved, penalties, strict=True):
                notebook.late_submission_penalty = penalty
            session.commit_batch()
            return [float(penalty or 0.0) for penalty in penalties]
        except BaseException:
            session.rollback()
            raise

    def _submission(self, student: str) -> SubmittedAssignment:
        folder = str(self._course.submitted(self._lab, student).parent)
        timestamp = self._api.coursedir.get_existing_timestamp(folder)
        known = {"timestamp": timestamp} if timestamp else {}
        self._gradebook.update_or_create_student(student)
        submission = self._gradebook.update_or_create_submission(self._lab, student, **known)
        granted = interval_of(self._extensions.of(self._lab).get(student), submission.assignment.duedate)
        if granted:
            submission.extension = granted
        return submission

    def _was_graded_before(self, graded: GradedSubmission) -> bool:
        """Whether the grade that is written was given to the same submission."""
        written = recorded_basis(self._course.autograded(self._lab, graded.student)).basis
        return written.get("submission") == graded.basis["submission"]

    def _save_scores(self, submission: SubmittedAssignment, scores: Scores, same: bool) -> SubmittedNotebook:
        """As SaveAutoGrades and SaveExtraCredit do: points that a person gave stay, and ask to be looked at again.

        same: what was handed in is what the person had seen. Then points ask only where the grader's own have changed.
        """
        (notebook,) = submission.notebooks
        grades = {self._names[grade.cell_id]: grade for grade in notebook.grades}
        comments = {self._names[comment.cell_id]: comment for comment in notebook.comments}
        for cell, points in scores.points.items():
            grade = grades[cell]
            by_hand = grade.manual_score is not None
            is_settled = same and by_hand and not grade.needs_manual_grade and grade.auto_score == points
            grade.auto_score = points
            grade.needs_manual_grade = not is_settled and (by_hand or points is None)
        for cell, points in scores.extra.items():
            grades[cell].extra_credit = points
        for cell, comment in scores.comments.items():
            comments[cell].auto_comment = comment
        notebook.late_submission_penalty = None
        return notebook

    def _penalty(
        self, submission: SubmittedAssignment, notebook: SubmittedNotebook, score: float | None = None
    ) -> float | None:
        """As AssignLatePenalties gives it, for the score that the notebook has or for another one."""
        late_s = submission.total_seconds_late
        if late_s <= 0:
            return None
        step = AssignLatePenalties(parent=self._api)
        step.init_plugin()
        score = notebook.score if score is None else score
        penalty = step.plugin_inst.late_submission_penalty(submission.student_id, score, late_s)
        return None if penalty is None else step._check_late_penalty(notebook, penalty)

    def _cell_names(self) -> dict[str, str]:
        notebook = self._gradebook.find_notebook(self._lab, self._lab)
        cells = (*notebook.grade_cells, *notebook.solution_cells, *notebook.task_cells)
        return {cell.id: cell.name for cell in cells}

    def _most(self) -> dict[str, float]:
        """The maximum of each cell that can give points, as the gradebook has it."""
        notebook = self._gradebook.find_notebook(self._lab, self._lab)
        return {cell.name: float(cell.max_score) for cell in (*notebook.grade_cells, *notebook.task_cells)}

    def _require_released(self) -> None:
        cells = [cell for cell in self._course.template(self._lab).cells if cell.kind in ("check", "test", "manual")]
        remedy = f"release the lab again: python -m grading release {self._course.root} {self._lab}"
        known = patiently(self._most)
        if missing := sorted({cell.id for cell in cells} - set(known)):
            raise UserError(f"the gradebook does not know {', '.join(missing)} of {self._lab}", remedy)
        if other := sorted(f"{cell.id} {known[cell.id]:g}" for cell in cells if known[cell.id] != cell.points):
            raise UserError(f"the gradebook has other maxima than {self._lab}'s source: {', '.join(other)}", remedy)

    def _is_only_notebook(self) -> bool:
        return [notebook.name for notebook in self._gradebook.find_assignment(self._lab).notebooks] == [self._lab]


@contextlib.contextmanager
def open_writer(course: Course, lab: str, isolation: str) -> Iterator[Writer]:
    """The lab's writer, for one who holds the course; `isolation` is what its results are made with.

    Raises UserError where the lab was not released or the gradebook cannot be used.
    """
    api = open_api(course, Config({"Supervise": {"isolation": isolation, "within_grade": True}}))
    with open_for_writing(api.coursedir) as gradebook:
        yield Writer(course, lab, api, gradebook)
