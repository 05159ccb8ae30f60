"""Set up an nbgrader course of these labs, and make the students' version of a lab.

An existing folder is never written into.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from nbgrader.api import MissingEntry

from grading import own_labs
from grading.build.notebook import to_json
from grading.build.template_text import left_in
from grading.course import CONFIG, Course
from grading.course_file import NAME, CourseFile, read_course_file
from grading.errors import UserError
from grading.gradebook.database import checked_url
from grading.gradebook.reading import open_for_reading
from grading.gradebook.sources import build_sources
from grading.nbgrader_api import NbgraderFailed, expect_success, open_api
from grading.terminal import say

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


def set_up(
    folder: Path,
    course_id: str,
    db: str | None = None,
    labs: Collection[str] | None = None,
    file: Path | None = None,
) -> Course:
    """Make a course folder, whole or not at all.

    db: a PostgreSQL URL for its gradebook. file: its `course.toml`, which is copied into it. labs: the numbers of those
    that it has, by default those of the file, or all. Raises UserError where the folder exists, the disk refuses, the
    database cannot be used or the file asks for what there is not.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not empty", "choose another folder, or remove this one yourself")
    db_url = checked_url(db) if db else None
    if file is not None and not file.is_file():
        raise UserError(f"{file} is not there", "docs/adapting.md shows what it may say")
    notebooks = build_sources(read_course_file(file) if file else CourseFile(), labs)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise UserError(f"{folder} cannot be made", str(error.strerror)) from error
    try:
        (draft / CONFIG).write_text(config_text(course_id, db_url))
        for lab, notebook in notebooks.items():
            (draft / "source" / lab).mkdir(parents=True)
            (draft / "source" / lab / f"{lab}.ipynb").write_text(to_json(notebook), encoding="utf-8")
        if file:
            shutil.copyfile(file, draft / NAME)
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
    """nbgrader's generate_assignment for each lab, if all of them are written. Raises UserError."""
    for lab in labs:
        _require_written(course, lab)
    api = open_api(course)
    for lab in labs:
        _require_known_cells(course, lab)
        try:
            expect_success(course, api.generate_assignment(lab, force=True))
        except NbgraderFailed as error:
            raise UserError(f"lab {lab} was not released", str(error)) from error
        say(f"released {course.root / 'release' / lab}")


def _require_written(course: Course, lab: str) -> None:
    """A lab whose text is the template's in places is not for students."""
    if found := left_in(course.source(lab)):
        # Its author edits the lab's own source, where that is at hand and has them too.
        own = [path for path in own_labs.sources() if path.stem == lab]
        found = [line for path in own for line in left_in(path)] or found
        raise UserError(
            f"lab {lab} was not released: its text is the template's in {len(found)} place{'s' * (len(found) != 1)}",
            f"write your own: {'; '.join(found)}",
        )


def _require_known_cells(course: Course, lab: str) -> None:
    """Once there are submissions, nbgrader refuses other cells than it has, with a reason that few would understand."""
    with open_for_reading(course) as gradebook:
        try:
            notebook = gradebook and gradebook.find_notebook(lab, lab)
        except MissingEntry:
            return
        if not notebook or not notebook.submissions:
            return
        known = {cell.name for cell in (*notebook.grade_cells, *notebook.task_cells)}
    wanted = {cell.id for cell in course.template(lab).cells if cell.kind in ("check", "test", "manual")}
    if other := sorted(known ^ wanted):
        changes = ", ".join(f"{name} is {'gone' if name in known else 'new'}" for name in other)
        raise UserError(
            f"lab {lab} was not released: {changes}, and submissions of it were graded",
            f"nbgrader then keeps to the cells that it has: put {NAME} back as it was, and run adapt",
        )
