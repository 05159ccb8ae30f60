"""Two steps of nbgrader's autograding, ours: rebuild the submission, then write supervised verdicts into it.

Both stand where nbgrader would execute the student's notebook, which never happens in this process.
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
from grading.gradebook.outputs import write_results
from grading.gradebook.provenance import standing_of
from grading.rebuild import rebuilt_notebook
from grading.submissions import Graded, prepare, result_of


class _CourseStep(NbGraderPreprocessor):
    def prepared(self, resources: ResourcesDict) -> Graded:
        names = resources["nbgrader"]
        return prepare(self.course(), names["assignment"], names["notebook"], names["student"])

    def course(self) -> Course:
        return Course.at(CourseDirectory(config=self.config).root)


class Rebuild(_CourseStep):
    """Replaces the submitted notebook by the template with the student's answers in it."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        work = self.prepared(resources)
        for note in work.merged.notes:
            self.log.warning("%s: %s", work.job.student, note)
        return rebuilt_notebook(work.template, work.merged), resources


class Supervise(_CourseStep):
    """Writes the verdicts into the rebuilt notebook's cells, from the stored result or from a run made now."""

    isolation = Unicode("auto", help="The isolation: auto, bwrap, kernel or none.").tag(config=True)
    within_grade = Bool(False, help="Set by `python -m grading grade`, which holds the course.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        course, work = self.course(), self.prepared(resources)
        with contextlib.nullcontext() if self.within_grade else course.locked():
            result = result_of(course, work, self.isolation)
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            standing = standing_of(course, work.job.lab, gradebook, work.job.student)
        return write_results(nb, work, result, standing.rests_on(course, work)), resources
