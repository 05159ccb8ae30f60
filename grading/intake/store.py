"""Archive every submitted notebook under the SHA-256 of its bytes: a later submission never loses an earlier one.

Archived files are read-only and never removed. Who handed what in, and when, is in the log.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from grading.course import Course
from grading.files import read_plain_file, write_whole
from grading.rebuild.submission import MAX_BYTES

READ_ONLY = 0o400


def archived_path(course: Course, lab: str, digest: str) -> Path:
    """Where the notebook with this SHA-256 lies, or would."""
    return course.root / ".grading" / "submissions" / lab / f"{digest}.ipynb"


def archive_submission(course: Course, lab: str, student: str) -> str:
    """Archive this student's notebook as it is under submitted/ now; returns the SHA-256 of its bytes.

    Raises Unreadable where there is no plain file of at most MAX_BYTES, and OSError where this machine is at fault.
    """
    return archive_bytes(course, lab, read_plain_file(course.submitted(lab, student), MAX_BYTES))


def archive_bytes(course: Course, lab: str, data: bytes) -> str:
    """Archive these bytes; returns their SHA-256. Raises OSError where the disk refuses."""
    digest = hashlib.sha256(data).hexdigest()
    path = archived_path(course, lab, digest)
    if not _holds(path, digest):
        # What is replaced next must be safe here first, also from a power cut.
        write_whole(path, data, mode=READ_ONLY, durable=True)
    return digest


def _holds(path: Path, digest: str) -> bool:
    """Whether the file is there and whole: a name alone says nothing about what a full disk left behind."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError:
        return False
