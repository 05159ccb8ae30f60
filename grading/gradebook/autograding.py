"""Does a course's configuration leave nbgrader's autograding as `course_config` made it?

Then the grades may be written by our own writer; else nbgrader's own autograding has to do it, with whatever the
instructor put into it.
"""

from __future__ import annotations

from nbconvert.exporters import NotebookExporter
from nbconvert.writers import FilesWriter
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from grading.gradebook.config import AUTOGRADE_STEPS, SANITIZE_STEPS, course_config

STEPS = tuple(dict.fromkeys((*SANITIZE_STEPS, *AUTOGRADE_STEPS)))
_PARTS = (Autograde, CourseDirectory, NotebookExporter, FilesWriter, *STEPS)
_SECTIONS = {cls.__name__ for part in _PARTS for cls in part.__mro__}
_HEEDED = {
    ("CourseDirectory", "course_id"),
    ("CourseDirectory", "db_url"),
    ("CourseDirectory", "ignore"),
    ("AssignLatePenalties", "plugin_class"),
    ("Supervise", "isolation"),
    ("Supervise", "within_grade"),
}
"""What the writer heeds, whatever it is set to."""


def is_standard_autograding(config: Config) -> bool:
    """Whether nothing that bears on autograding differs from a fresh course's, but for what the writer heeds."""
    folder = config.CourseDirectory
    plain = course_config(str(folder.root) if "root" in folder else "", "")
    return _settings(config) == _settings(plain)


def _settings(config: Config) -> dict[tuple[str, str], object]:
    return {
        (section, name): value
        for section in _SECTIONS & set(config)
        for name, value in config[section].items()
        if (section, name) not in _HEEDED
    }
