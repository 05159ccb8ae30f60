"""nbgrader's exchange directory: release into it, collect from it what students put there, and hand feedback back.

nbgrader decides which submission is a student's newest and where the exchange is. Its copying is replaced: it follows
links with the instructor's rights, and one folder with a false name stops it for the whole class.
"""

from __future__ import annotations

import datetime
import os
import pwd
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nbgrader.apps import NbGraderAPI
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.utils import capture_log, temp_attrs

from grading.course import Course
from grading.errors import UserError
from grading.files import Unreadable, open_plain_file
from grading.intake.arrived import Arrivals, RefusedFile
from grading.intake.folder import read_folder
from grading.intake.secret import SECRET
from grading.intake.timestamp import TIMESTAMP
from grading.nbgrader_api import NbgraderFailed, expect_success, open_api
from grading.rebuild.submission import MAX_BYTES

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class NotCopied(Exception):
    """A submission in the exchange is not taken; the message says why."""


class StagedCollect(ExchangeCollect):
    """nbgrader's collect, choosing among folders of the student's own, copying plain files alone, and going on after
    what it cannot take.

    `refused` lists what that was.
    """

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.refused: list[RefusedFile] = []

    def _path_to_record(self, path: str) -> dict:
        """Before the newest is chosen, so that a folder with a false name does not stand in for a true one."""
        try:
            record = super()._path_to_record(path)
        except Exception as error:
            # Anybody may make a folder here, by any name.
            reason = f"its name is none that nbgrader gives ({error})"
        else:
            try:
                if self.check_owner:
                    _refuse_other(os.lstat(path).st_uid, record["username"])
                return record
            except (NotCopied, OSError) as error:
                reason = _reason(error)
        self.refused.append(RefusedFile(os.path.basename(path), reason))
        return {"username": "", "filename": os.path.basename(path), "timestamp": datetime.datetime.min}

    def copy_files(self) -> None:
        self.src_records = [record for record in self.src_records if record["username"]]
        super().copy_files()

    def do_copy(self, src: str, dest: str, log: object = None) -> None:
        record = super()._path_to_record(src)
        owner = record["username"] if self.check_owner else None
        try:
            _copy_submission(src, dest, f"{self.coursedir.assignment_id}.ipynb", owner)
        except (NotCopied, OSError) as error:
            self.refused.append(RefusedFile(os.path.basename(src), _reason(error)))
        else:
            # The time in the folder's name, by which nbgrader chose, not what a file beside it may say.
            (Path(dest) / TIMESTAMP).write_text(f"{record['timestamp']} UTC")


@contextmanager
def collect_exchange(course: Course, lab: str) -> Iterator[Arrivals]:
    """What the exchange holds for a lab, each student's newest as STUDENT/LAB/LAB.ipynb, while the block runs.

    Raises UserError where nbgrader cannot collect, or the course is set to another kind of exchange.
    """
    with tempfile.TemporaryDirectory(prefix=".collect-", dir=course.root / ".grading") as staging:
        api = open_api(course)
        _require_root(course, api)
        if api.exchange.collect is not ExchangeCollect:
            kind = f"{api.exchange.collect.__module__}.{api.exchange.collect.__name__}"
            problem = f"this course collects through {kind}, whose files are not known here"
            raise UserError(problem, "run nbgrader collect, or collect a folder")
        with temp_attrs(api.coursedir, assignment_id=lab, submitted_directory=staging):
            collect = StagedCollect(coursedir=api.coursedir, authenticator=api.authenticator, parent=api)
            try:
                expect_success(course, capture_log(collect))
            except NbgraderFailed as error:
                raise UserError(f"nbgrader could not collect {lab}", str(error)) from error
        arrivals = read_folder(Path(staging))
        arrivals.refused += collect.refused
        yield arrivals


def release_to_exchange(course: Course, lab: str) -> Path:
    """nbgrader's release_assignment; a release that is there is replaced. Returns its folder. Raises UserError."""
    api = open_api(course)
    api.config.ExchangeReleaseAssignment.force = True
    _require_root(course, api, makes_it=True)
    try:
        expect_success(course, api.release_assignment(lab))
    except NbgraderFailed as error:
        raise UserError(f"lab {lab} was not released to the exchange", str(error)) from error
    return _root(api) / api.coursedir.course_id / "outbound" / lab


def release_feedback_to_exchange(course: Course, lab: str) -> list[str]:
    """nbgrader's release_feedback: each page under a name that only who handed in that notebook can work out.

    Returns the students who have a page and whose work came another way than through the exchange: nbgrader would
    release nobody's for one of them. Raises UserError.
    """
    api = open_api(course)
    _require_root(course, api)
    graded = [student for student in course.students(lab) if course.feedback(lab, student).is_file()]
    known = [student for student in graded if _is_known_to_exchange(course, lab, student)]
    try:
        for student in known:
            expect_success(course, api.release_feedback(lab, student))
    except NbgraderFailed as error:
        raise UserError(f"the feedback on {lab} was not released to the exchange", str(error)) from error
    return sorted(set(graded) - set(known))


def _root(api: NbGraderAPI) -> Path:
    return Path(ExchangeCollect(coursedir=api.coursedir, parent=api).root)


def _require_root(course: Course, api: NbGraderAPI, makes_it: bool = False) -> None:
    """Raises UserError, where nbgrader would ask the instructor to contact the instructor."""
    root = _root(api)
    there = next(path for path in (root, *root.parents) if path.exists())
    if (there == root or makes_it) and os.access(there, os.W_OK | os.X_OK):
        return
    problem = "is a folder that you may not write to" if there == root else "is not there"
    remedy = f'mend that, or name another one in {course.config}: c.Exchange.root = "/srv/nbgrader/exchange"'
    raise UserError(f"the exchange, {root}, {problem}", remedy)


def _is_known_to_exchange(course: Course, lab: str, student: str) -> bool:
    folder = course.feedback(lab, student).parent
    return all((folder / name).is_file() for name in (SECRET, TIMESTAMP))


def _copy_submission(src: str, dest: str, name: str, owner: str | None) -> None:
    """Copy the notebook, and its secret, out of a folder that belongs to a student, who may change it meanwhile."""
    folder = os.open(src, FOLDER)
    try:
        uid = os.fstat(folder).st_uid
        if owner is not None:
            _refuse_other(uid, owner)
        files = {name: _plain_bytes(folder, name, uid)}
        with suppress(NotCopied):
            files[SECRET] = _plain_bytes(folder, SECRET, uid)
    finally:
        os.close(folder)
    os.makedirs(dest)
    for each, data in files.items():
        (Path(dest) / each).write_bytes(data)


def _refuse_other(uid: int, owner: str) -> None:
    if (found := _name_of(uid)) != owner:
        text = f"it says it is from {owner} but belongs to {found}"
        raise NotCopied(f"{text} (where accounts are not student ids: c.ExchangeCollect.check_owner = False)")


def _reason(error: NotCopied | OSError) -> str:
    return str(error.strerror if isinstance(error, OSError) else error)


def _plain_bytes(folder: int, name: str, uid: int) -> bytes:
    """A file of the folder's owner: a second name of a classmate's file would still belong to the classmate."""
    try:
        with open_plain_file(Path(name), folder) as file:
            if (found := os.fstat(file.fileno()).st_uid) != uid:
                raise NotCopied(f"{name} belongs to {_name_of(found)}, its folder to {_name_of(uid)}")
            # One more than allowed, which whoever reads it next refuses.
            return file.read(MAX_BYTES + 1)
    except (Unreadable, IsADirectoryError) as error:
        raise NotCopied(f"{name} is not an ordinary file") from error
    except OSError as error:
        raise NotCopied(f"{name} is missing, a link, or cannot be read ({error.strerror})") from error


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
