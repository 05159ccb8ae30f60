"""Our steps in nbgrader's autograding: rebuild the submission, write supervised verdicts into it, save extra credit.

The first two stand where nbgrader would execute the student's notebook, which never happens in this process.
"""

from __future__ import annotations

import contextlib

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Unicode

from grading.course import Course
from grading.gradebook.extensions import extend, read_extensions
from grading.gradebook.outputs import write_results
from grading.gradebook.provenance import lab_basis
from grading.gradebook.scores import scores_of
from grading.isolation import AUTO, CHOICES, isolates
from grading.rebuild import rebuilt_notebook
from grading.results import read_result, save_result
from grading.submissions import Prepared, prepare
from grading.supervisor import SubmissionResult
from grading.supervisor.run import run_as_asked


class _CourseStep(NbGraderPreprocessor):
    def prepared(self, resources: ResourcesDict) -> Prepared:
        names = resources["nbgrader"]
        return prepare(self.course(), names["assignment"], names["notebook"], names["student"])

    def course(self) -> Course:
        return Course.at(CourseDirectory(config=self.config).root)


class Rebuild(_CourseStep):
    """Replaces the submitted notebook by the template with the student's answers in it."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        prepared = self.prepared(resources)
        for note in prepared.merged.notes:
            self.log.warning("%s: %s", prepared.job.student, note)
        return rebuilt_notebook(prepared.template, prepared.merged), resources


class Supervise(_CourseStep):
    """Writes the verdicts into the rebuilt notebook's cells, from the stored result or from a run made now."""

    isolation = Unicode(AUTO, help=f"The isolation: {', '.join(CHOICES)}.").tag(config=True)
    within_grade = Bool(False, help="Set by `python -m grading grade`, which holds the course.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        course, prepared = self.course(), self.prepared(resources)
        job = prepared.job
        # A file that cannot be read is refused before minutes are spent.
        extensions = read_extensions(course)
        with contextlib.nullcontext() if self.within_grade else course.locked():
            result = _result_of(course, prepared, self.isolation)
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            extend(course, job.lab, gradebook, extensions, job.student)
            gradebook.db.commit()
            basis = lab_basis(course, job.lab, gradebook, job.student)
        for problem in extensions.problems:
            self.log.warning("%s", problem)
        return write_results(nb, prepared, result, basis.of(course, job.lab, job.student, job.attempt)), resources


class SaveExtraCredit(NbGraderPreprocessor):
    """Saves what optional exercises earned as extra credit, in place of what was there; to follow SaveAutoGrades.

    Extra credit that a person gave for any other cell stays.
    """

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            for cell, points in scores_of(nb).extra.items():
                grade = gradebook.find_grade(cell, names["notebook"], names["assignment"], names["student"])
                grade.extra_credit = points
            gradebook.db.commit()
        return nb, resources


def _result_of(course: Course, prepared: Prepared, isolation: str) -> SubmissionResult:
    """The stored result of a job, or a fresh one, which is stored before it is returned.

    isolation is a tier or "auto". Raises InfrastructureFault.
    """
    stored = read_result(prepared.result_path, may_be_none=not isolates(isolation))
    return stored or save_result(course, prepared.job, run_as_asked(prepared.job, isolation))
