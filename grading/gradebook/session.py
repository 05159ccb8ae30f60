"""nbgrader's gradebook as one session for a whole run: commits in batches, and waits where others hold the database.

What is written is other modules' business.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from grading.errors import UserError
from grading.nbgrader_api import NbgraderFailed

PATIENCE_S = 60.0
PAUSE_S = 0.25
_HELD = ("locked", "lock timeout", "deadlock")
T = TypeVar("T")


class StatementRejected(Exception):
    """The database refused a statement, for the reason in `orig`."""

    def __init__(self, orig: BaseException) -> None:
        super().__init__(str(orig))
        self.orig = orig


class BatchSession(Session):
    """nbgrader's own methods commit at every step; here they write, and `commit_batch` commits what has gathered."""

    def commit(self) -> None:
        try:
            self.flush()
        except OperationalError as error:
            # SQLAlchemy's own error would be taken for a bad entry by nbgrader, and its cause lost.
            raise StatementRejected(error.orig) from error

    def commit_batch(self) -> None:
        super().commit()


@contextlib.contextmanager
def open_for_writing(folder: CourseDirectory) -> Iterator[Gradebook]:
    """The gradebook, with a BatchSession: what is not committed by `commit_batch` is lost at the end.

    Raises UserError where the database cannot be opened, is damaged or stays locked.
    """
    with refusing_damage(folder.db_url):
        gradebook = patiently(lambda: Gradebook(folder.db_url, folder.course_id))
        try:
            gradebook.db.remove()
            gradebook.db = scoped_session(sessionmaker(class_=BatchSession, bind=gradebook.engine))
            yield gradebook
        finally:
            gradebook.close()


@contextlib.contextmanager
def refusing_damage(url: str) -> Iterator[None]:
    """Raises UserError where a file turns out to be no whole database, at once or in the midst of it."""
    try:
        yield
    except DatabaseError as error:
        # Its subclasses are about a statement, and about a server.
        if type(error) is not DatabaseError:
            raise
        remedy = (
            "put a backup of it in its place; without one, move it away, then release and grade again: what was graded "
            "is written in anew, and only what persons gave is lost"
        )
        shown = make_url(url).render_as_string(hide_password=True)
        raise UserError(f"the gradebook {shown} is damaged ({error.orig})", remedy) from error


def patiently(do: Callable[[], T], undo: Callable[[], None] = lambda: None) -> T:
    """Do it, again and again while another program holds the database, for PATIENCE_S at most; `undo` after each.

    Raises UserError when it stays locked, or at once for what waiting does not mend.
    """
    ends_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            return do()
        except (OperationalError, StatementRejected, NbgraderFailed) as error:
            undo()
            reason = str(getattr(error, "orig", error)).strip().split("\n")[0]
            is_held = any(word in reason for word in _HELD)
            if isinstance(error, NbgraderFailed) and not is_held:
                raise
            if not is_held:
                remedy = "fix that and run the same command again; nothing that was graded is lost"
                raise UserError(f"the gradebook cannot be used ({reason})", remedy) from error
            if time.monotonic() > ends_at:
                remedy = "close that program and run the same command again; nothing that was graded is lost"
                text = f"another program held the gradebook for {PATIENCE_S:g} s ({reason})"
                raise UserError(text, remedy) from error
            time.sleep(PAUSE_S)
