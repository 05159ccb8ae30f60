"""Set up an nbgrader course of these labs, and make the students' version of a lab.

An existing folder is never written into.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

import nbformat

from grading.build import BadSource, build
from grading.course import CONFIG, Course
from grading.errors import UserError
from grading.gradebook.database import checked_url
from grading.nbgrader_api import NbgraderFailed, expect_success, open_api
from grading.terminal import say

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"
CONFIG_TEXT = '''"""nbgrader's configuration of this course. Change and add what you like (penalties, exchange).

The line with `course_config` makes nbgrader grade through the supervisor of Efficient Training Labs.
"""

from pathlib import Path

from grading.gradebook.config import course_config

c = get_config()  # noqa: F821
c.merge(course_config(root=str(Path(__file__).resolve().parent), course_id={course_id!r}))
'''

DB_TEXT = """
# The password is not written here: the driver looks for it in ~/.pgpass and in PGPASSWORD.
c.CourseDirectory.db_url = {db_url!r}
"""


def set_up(folder: Path, course_id: str, db: str | None = None, labs: Collection[str] | None = None) -> Course:
    """Make a course folder, whole or not at all.

    db: a PostgreSQL URL for its gradebook. labs: the numbers of those that it has, by default all. Raises UserError
    where the folder exists, the disk refuses or the database cannot be used.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not empty", "choose another folder, or remove this one yourself")
    db_url = checked_url(db) if db else None
    sources = [path for path in sorted(SOLUTIONS.glob("[0-9][0-9]_*.py")) if labs is None or path.stem[:2] in labs]
    if not sources:
        raise UserError(f"{SOLUTIONS} has no labs", "run this from a full checkout, not from a student bundle")
    try:
        notebooks = {path.stem: build(path).solution for path in sources}
    except BadSource as error:
        raise UserError("a lab's source is refused", f"fix this: {'; '.join(map(str, error.problems))}") from error
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise UserError(f"{folder} cannot be made", str(error.strerror)) from error
    try:
        (draft / CONFIG).write_text(config_text(course_id, db_url))
        for lab, notebook in notebooks.items():
            (draft / "source" / lab).mkdir(parents=True)
            nbformat.write(notebook, draft / "source" / lab / f"{lab}.ipynb")
        (draft / "submitted").mkdir()
        Course(draft).make_key()
        draft.chmod(0o755)
        draft.replace(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return Course.at(folder)


def config_text(course_id: str, db_url: str | None = None) -> str:
    """A new course's nbgrader_config.py."""
    text = CONFIG_TEXT.format(course_id=course_id)
    return text + DB_TEXT.format(db_url=db_url) if db_url else text


def release(course: Course, labs: list[str]) -> None:
    """nbgrader's generate_assignment for each lab."""
    api = open_api(course)
    for lab in labs:
        try:
            expect_success(course, api.generate_assignment(lab, force=True))
        except NbgraderFailed as error:
            raise UserError(f"lab {lab} was not released", str(error)) from error
        say(f"released {course.root / 'release' / lab}")
