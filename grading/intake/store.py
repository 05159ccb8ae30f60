"""Keep the bytes of every submitted notebook by their SHA-256, so that a later submission never loses an earlier one.

Kept files are read-only and never removed. Who handed what in, and when, is the log's to tell.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from grading.gradebook.course import Course
from grading.rebuild import Unreadable
from grading.rebuild.submission import MAX_BYTES

READ_ONLY = 0o400


def kept(course: Course, lab: str, digest: str) -> Path:
    """Where the notebook with this SHA-256 lies, or would."""
    return course.root / ".grading" / "submissions" / lab / f"{digest}.ipynb"


def keep(course: Course, lab: str, student: str) -> str:
    """Keep this student's notebook as it is under submitted/ now; returns the SHA-256 of its bytes.

    Raises Unreadable where there is no plain file of at most MAX_BYTES, which is never followed through a link.
    """
    return keep_bytes(course, lab, read_plain_file(course.submitted(lab, student)))


def keep_bytes(course: Course, lab: str, data: bytes) -> str:
    """Keep these bytes; returns their SHA-256. Raises OSError where the disk refuses."""
    digest = hashlib.sha256(data).hexdigest()
    path = kept(course, lab, digest)
    if _holds(path, digest):
        return digest
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{digest[:12]}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), READ_ONLY)
            # What is replaced next must be safe here first, also from a power cut.
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
    return digest


def read_plain_file(path: Path) -> bytes:
    """A plain file's bytes, at most MAX_BYTES. Raises Unreadable for links, other kinds of file and larger ones."""
    if any(part.is_symlink() for part in (path, *list(path.parents)[:2])):
        raise Unreadable(f"{path.name} is a link or lies behind one: ask for the file itself")
    try:
        # Not blocking, because a named pipe would keep us waiting for somebody to write into it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unreadable(f"{path.name} is no ordinary file: ask for the notebook itself")
            # One more than allowed tells a file that is too large, even while it grows.
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise Unreadable(f"{path.name} has more than {MAX_BYTES:,} bytes: clear its outputs and resubmit")
    return data


def _holds(path: Path, digest: str) -> bool:
    """Whether the file is there and whole: a name alone says nothing about what a full disk left behind."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError:
        return False
