"""Two steps of nbgrader's autograding, ours: rebuild the submission, then write supervised verdicts into it.

Both stand where nbgrader would execute the student's notebook, which never happens in this process.
"""

from __future__ import annotations

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

from grading.gradebook.course import Course
from grading.gradebook.outputs import write_results
from grading.gradebook.standing import Standing
from grading.gradebook.work import Graded, prepare, result_of
from grading.rebuild import rebuilt_notebook


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

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        work = self.prepared(resources)
        standing = Standing.of(self.course(), work.job.lab, resources["nbgrader"]["db_url"])
        return write_results(nb, work, result_of(work), standing.of_student(work)), resources
