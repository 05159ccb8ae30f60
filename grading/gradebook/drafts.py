"""The folder of a graded submission, made whole beside its place and moved there when its grade is in the database.

A draft that is still there belongs to a grade whose writing did not end: it is to be written again.
"""

from __future__ import annotations

import fnmatch
import math
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grading.course import Course
from grading.files import open_if_plain

LARGE_BYTES = 20 * 2**20
"""A file beside the notebook that is larger stays where it was handed in."""
MOST_FILES, MOST_BYTES, LONGEST_PATH_BYTES = 1_000, 100 * 2**20, 400
"""What is copied of a student's at most: so many files, of so much in all, by paths of that length below the folder."""
PERMISSIONS = 0o444
"""nbgrader's own for what it has graded."""


def draft_of(course: Course, lab: str, student: str) -> Path:
    """Where this submission's draft lies, or would."""
    return course.root / ".grading" / "drafts" / lab / student


def make_draft(course: Course, lab: str, student: str, notebook: NotebookNode, ignore: Sequence[str]) -> None:
    """The graded notebook and the files that nbgrader puts beside it: the course's, and the student's by other names.

    ignore: nbgrader's patterns of files that are not copied. Raises OSError.
    """
    draft = draft_of(course, lab, student)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    ignored = re.compile("|".join(map(fnmatch.translate, [*ignore, "*.ipynb"])))
    theirs, ours = course.submitted(lab, student).parent, course.source(lab).parent
    _copy_files(ours, _files_in(ours, ignored), draft)
    _copy_files(theirs, islice(_files_in(theirs, ignored), MOST_FILES), draft, MOST_BYTES)
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


def _files_in(top: Path, ignored: re.Pattern[str]) -> Iterator[Path]:
    """In the order of their names. Each name is looked at once, where nbgrader lists the folder again for each."""
    for folder, inner, names in os.walk(top):
        is_deep = len(os.fsencode(folder)) - len(os.fsencode(top)) > LONGEST_PATH_BYTES
        inner[:] = [] if is_deep else sorted(name for name in inner if not ignored.match(name))
        yield from (Path(folder, name) for name in sorted(names) if not ignored.match(name))


def _copy_files(top: Path, paths: Iterator[Path], draft: Path, most_bytes: float = math.inf) -> None:
    """Copy what is readable and at most LARGE_BYTES, to where nothing is yet, until `most_bytes` are reached."""
    for path in paths:
        # A link could lead to a classmate's work, a pipe or a device has no end, and what is closed stays so.
        file = open_if_plain(path)
        if file is None:
            continue
        with file:
            copy, size_bytes = draft / path.relative_to(top), os.fstat(file.fileno()).st_size
            if size_bytes > min(LARGE_BYTES, most_bytes) or not _make_room(copy):
                continue
            most_bytes -= size_bytes
            # No more than that, even while it grows.
            copy.write_bytes(file.read(size_bytes))
        copy.chmod(PERMISSIONS)


def _make_room(copy: Path) -> bool:
    """Make the folders above; False where a file has the name of one of these, or something has its own."""
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return False
    return not os.path.lexists(copy)
