"""nbconvert's way to our page: a graded notebook goes in, HTML comes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from nbconvert.exporters import Exporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from traitlets import default

from grading.course import Course
from grading.feedback.content import Content, OwnPart
from grading.feedback.reading import content_of
from grading.pages import template_of
from grading.pseudonym import pseudonym_of
from grading.results import METADATA, read_result
from grading.supervisor.result import SubmissionResult


class FeedbackExporter(Exporter):
    """For `GenerateFeedback.exporter_class`, after `ReadMarks`."""

    output_mimetype = "text/html"

    @default("file_extension")
    def _html(self) -> str:
        return ".html"

    def from_notebook_node(
        self, nb: NotebookNode, resources: ResourcesDict | None = None, **kwargs: Any
    ) -> tuple[str, ResourcesDict]:
        nb, resources = super().from_notebook_node(nb, resources, **kwargs)
        names = resources["nbgrader"]
        course = Course.at(CourseDirectory(config=self.config).root)
        result = _result(course, names, nb)
        content = content_of(nb, names, result)
        if result and any(found.deciding.record for found in result.exercises.values()):
            content = replace(content, on_the_board=pseudonym_of(course, names["student"]))
        return as_page(content), resources


def as_page(content: Content) -> str:
    """The page's text."""
    page = template_of(Path(__file__).parent, "page.html.j2").render(
        page=content, is_own=lambda part: isinstance(part, OwnPart)
    )
    return page if page.endswith("\n") else f"{page}\n"


def _result(course: Course, names: dict, notebook: NotebookNode) -> SubmissionResult | None:
    """The result that the notebook was graded by."""
    key = notebook.metadata.get(METADATA, {}).get("job")
    return read_result(course.result(names["assignment"], key)) if key else None
