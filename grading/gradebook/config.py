"""nbgrader's configuration for a course of these labs: the stubs of the build, and our steps in its autograding, our
feedback page.

Imported by the `nbgrader_config.py` of every course, so that nbgrader's command line, its Python API and the
formgrader's button all grade the same way.
"""

from __future__ import annotations

from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, SaveAutoGrades
from traitlets.config import Config

from grading.build import nbgrader_config
from grading.feedback import FeedbackExporter, ReadMarks
from grading.gradebook.preprocessors import Rebuild, SaveExtraCredit, Supervise

SANITIZE_STEPS = (Rebuild, CheckCellMetadata)
AUTOGRADE_STEPS = (Supervise, SaveAutoGrades, SaveExtraCredit, AssignLatePenalties, CheckCellMetadata)


def course_config(root: str, course_id: str) -> Config:
    """The Config of the course in folder `root`; in an `nbgrader_config.py`: `c.merge(course_config(...))`.

    `c.Supervise.isolation` there chooses the isolation for nbgrader's own command and the formgrader's button.
    """
    config = nbgrader_config()
    config.CourseDirectory.root = root
    config.CourseDirectory.course_id = course_id
    config.Autograde.sanitize_preprocessors = list(SANITIZE_STEPS)
    config.Autograde.autograde_preprocessors = list(AUTOGRADE_STEPS)
    config.GenerateFeedback.exporter_class = FeedbackExporter
    config.GenerateFeedback.preprocessors = [ReadMarks]
    return config
