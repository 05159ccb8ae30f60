"""Keep the bytes of every submitted notebook by their SHA-256, so that a later submission never loses an earlier one.

Kept files are read-only and never removed. Who handed what in, and when, is the log's to tell.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from grading.course import Course
from grading.rebuild import read_plain_file
from grading.rebuild.submission import MAX_BYTES

READ_ONLY = 0o400


def kept(course: Course, lab: str, digest: str) -> Path:
    """Where the notebook with this SHA-256 lies, or would."""
    return course.root / ".grading" / "submissions" / lab / f"{digest}.ipynb"


def keep(course: Course, lab: str, student: str) -> str:
    """Keep this student's notebook as it is under submitted/ now; returns the SHA-256 of its bytes.

    Raises Unreadable where there is no plain file of at most MAX_BYTES, and OSError where this machine is at fault.
    """
    return keep_bytes(course, lab, read_plain_file(course.submitted(lab, student), MAX_BYTES))


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


def _holds(path: Path, digest: str) -> bool:
    """Whether the file is there and whole: a name alone says nothing about what a full disk left behind."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError:
        return False
