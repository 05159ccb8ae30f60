"""A course folder: nbgrader's layout, and beside it `.grading/` with the secret key and the stored results.

Paths and names only; grading and nbgrader's own files are other modules' business.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import functools
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grading import own_labs
from grading.course_file import NAME, read_course_file
from grading.errors import UserError
from grading.rebuild import Template, read_template

CONFIG = "nbgrader_config.py"
KEY_BYTES = 32


@dataclass(frozen=True)
class Course:
    """The folder of one course."""

    root: Path

    @classmethod
    def at(cls, folder: Path | str) -> Course:
        """The course in `folder`; its own labs are in use from here on. Raises UserError where none was set up."""
        root = Path(folder).resolve()
        if not (root / CONFIG).is_file():
            raise UserError(f"{root} is not a course folder", f"set one up: python -m grading course {folder}")
        own_labs.use(read_course_file(root / NAME).own_labs)
        return cls(root)

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    def source(self, lab: str) -> Path:
        return self.root / "source" / lab / f"{lab}.ipynb"

    def submitted(self, lab: str, student: str) -> Path:
        return self.root / "submitted" / student / lab / f"{lab}.ipynb"

    def autograded(self, lab: str, student: str) -> Path:
        return self.root / "autograded" / student / lab / f"{lab}.ipynb"

    def feedback(self, lab: str, student: str) -> Path:
        return self.root / "feedback" / student / lab / f"{lab}.html"

    def result(self, lab: str, key: str) -> Path:
        return self.root / ".grading" / "results" / lab / f"{key}.json"

    def labs(self) -> list[str]:
        """The labs that the course has a source notebook for, in order."""
        return sorted(path.stem for path in (self.root / "source").glob("*/*.ipynb") if path.stem == path.parent.name)

    def lab(self, name: str) -> str:
        """The full name of a lab given as "02" or "02_float_formats". Raises UserError for an unknown one."""
        found = [lab for lab in self.labs() if name in (lab, lab[:2])]
        if len(found) != 1:
            known = ", ".join(self.labs()) or "none yet"
            remedy = f"it has: {known}; added since? python -m grading adapt {self.root}"
            raise UserError(f'there is no lab "{name}" in this course', remedy)
        return found[0]

    def students(self, lab: str) -> list[str]:
        """Who has a folder for this lab under submitted/, in order."""
        folders = (self.root / "submitted").glob(f"*/{_glob_safe(lab)}")
        return sorted(folder.parent.name for folder in folders if folder.is_dir())

    def expect_handed_in(self, lab: str, students: Iterable[str]) -> None:
        """Raises UserError for the first of these who has no folder for this lab, with names that are like theirs."""
        handed_in = self.students(lab)
        for student in students:
            if student not in handed_in:
                like = difflib.get_close_matches(student, handed_in, n=3, cutoff=0.5) or handed_in[:20]
                more = ", …" if len(like) < len(handed_in) else ""
                remedy = f"there are: {', '.join(like)}{more}" if like else "nobody has yet; collect submissions first"
                raise UserError(f'nobody called "{student}" has handed in {lab}', remedy)

    def template(self, lab: str) -> Template:
        """The lab's template, from its source notebook. Raises UserError where there is none."""
        path = self.source(lab)
        if not path.is_file():
            raise UserError(f"{path} is missing", "the course needs the solved notebook there to grade this lab")
        return _template(path, path.stat().st_mtime_ns)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the course for one grading run. Raises UserError while another run holds it."""
        path = self.root / ".grading" / "lock"
        path.parent.mkdir(exist_ok=True)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError("another run is grading this course", "wait until it has ended") from error
            yield

    def key(self) -> bytes:
        """The secret that hidden cases are drawn from. Raises UserError where it is missing or cut short."""
        path = self.root / ".grading" / "course.key"
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            key = b""
        if len(key) != KEY_BYTES:
            raise UserError(f"{path} is missing or damaged", "restore it from a backup: old grades depend on it")
        return key

    def make_key(self) -> None:
        """Draw the secret, once, readable by its owner alone."""
        path = self.root / ".grading" / "course.key"
        path.parent.mkdir(exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))


@functools.lru_cache(maxsize=8)
def _template(path: Path, changed_ns: int) -> Template:
    return read_template(path)


def _glob_safe(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
