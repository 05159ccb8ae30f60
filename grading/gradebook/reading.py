"""Open nbgrader's gradebook to read it, without making one where there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.engine import make_url

from grading.course import Course
from grading.gradebook.session import patiently, refusing_damage
from grading.nbgrader_api import load_config


@contextlib.contextmanager
def open_for_reading(course: Course) -> Iterator[Gradebook | None]:
    """The gradebook, or None where the course has none yet. Raises UserError where it is gone, damaged or held."""
    folder = CourseDirectory(config=load_config(course))
    url = make_url(folder.db_url)
    # Gradebook() would create the file.
    if url.get_backend_name() == "sqlite" and not (url.database and Path(url.database).is_file()):
        yield None
        return
    with refusing_damage(folder.db_url), patiently(lambda: Gradebook(folder.db_url, folder.course_id)) as gradebook:
        yield gradebook
