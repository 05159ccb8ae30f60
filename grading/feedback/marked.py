"""Points and comments from the gradebook into the notebook's cells, where the page finds them."""

from __future__ import annotations

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import GetGrades


class ReadMarks(GetGrades):
    """nbgrader's own step, which also notes who set a cell's points: "waiting" for a person, or "by_hand"."""

    def _get_score(self, cell: NotebookNode, resources: ResourcesDict) -> None:
        super()._get_score(cell, resources)
        names = (self.notebook_id, self.assignment_id, self.student_id)
        grade = self.gradebook.find_grade(cell.metadata.nbgrader["grade_id"], *names)
        cell.metadata.nbgrader["waiting"] = bool(grade.needs_manual_grade)
        cell.metadata.nbgrader["by_hand"] = grade.manual_score is not None
