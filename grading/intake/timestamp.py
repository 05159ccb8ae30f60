"""The time of submission, in the file that nbgrader reads it from.

nbgrader opens whatever has that name, so a run looks at it here first. Whether it is late is nbgrader's to say.
"""

from __future__ import annotations

import datetime
import os
import warnings
from pathlib import Path

from nbgrader.utils import parse_utc

from grading.files import Unreadable, read_plain_file

TIMESTAMP = "timestamp.txt"
MOST_BYTES = 200
AS_IT_SHOULD_BE = "write one like 2026-01-31 12:00:00 UTC"


def read_time(folder: Path) -> datetime.datetime | None:
    """The time noted in this folder, in UTC; None where none is.

    Raises Unreadable where the file is no plain one of at most MOST_BYTES with a date in it, and OSError where this
    machine is at fault.
    """
    path = folder / TIMESTAMP
    if not os.path.lexists(path):
        return None
    return parse_time(read_plain_file(path, MOST_BYTES, AS_IT_SHOULD_BE), TIMESTAMP)


def parse_time(data: bytes, name: str) -> datetime.datetime:
    """The time that a file called `name` holds, in UTC. Raises Unreadable where it is none."""
    try:
        # It warns of a time zone that it does not know, and nbgrader takes that for universal time.
        with warnings.catch_warnings(action="ignore"):
            return parse_utc(data.decode().strip()).replace(tzinfo=datetime.UTC)
    except Exception as error:
        # What reads it guesses at many forms, and raises whatever it trips over, decimal.InvalidOperation too.
        raise Unreadable(f"{name} is not a date: {AS_IT_SHOULD_BE} ({error})"[:200]) from error
