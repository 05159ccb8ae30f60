"""The folder of a graded submission, made whole beside its place and moved there when its grade is in the database.

A draft that is still there belongs to a grade whose writing did not end: it is to be written again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import find_all_files

from grading.course import Course

LARGE_BYTES = 20 * 2**20
"""A file beside the notebook that is larger stays where it was handed in."""
PERMISSIONS = 0o444
"""nbgrader's own for what it has graded."""


def draft_of(course: Course, lab: str, student: str) -> Path:
    """Where this submission's draft lies, or would."""
    return course.root / ".grading" / "drafts" / lab / student


def make_draft(course: Course, lab: str, student: str, notebook: NotebookNode, ignore: Sequence[str]) -> None:
    """The graded notebook and the files that nbgrader puts beside it: the student's, then the course's over them.

    ignore: nbgrader's patterns of files that are not copied. Raises OSError.
    """
    draft = draft_of(course, lab, student)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for folder in (course.submitted(lab, student).parent, course.source(lab).parent):
        _copy_files(folder, draft, [*ignore, "*.ipynb"])
    text = nbformat.writes(notebook, version=nbformat.current_nbformat)
    path = draft / f"{lab}.ipynb"
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    path.chmod(PERMISSIONS)


def publish_draft(course: Course, lab: str, student: str) -> None:
    """Let the draft take the place of what was graded before."""
    place = course.autograded(lab, student).parent
    if place.exists():
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    os.rename(draft_of(course, lab, student), place)


def _copy_files(folder: Path, draft: Path, ignore: list[str]) -> None:
    for name in find_all_files(str(folder), ignore):
        # A link could lead to a classmate's work, a pipe or a device has no end.
        if os.path.islink(name) or not os.path.isfile(name) or os.path.getsize(name) > LARGE_BYTES:
            continue
        copy = draft / os.path.relpath(name, folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if copy.exists():
            copy.unlink()
        shutil.copyfile(name, copy)
        copy.chmod(PERMISSIONS)
