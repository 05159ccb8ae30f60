"""What was received from each student before, read from the course's log.

The log is only read and added to; nothing else remembers who handed in what.
"""

from __future__ import annotations

import contextlib
import datetime
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from grading.course import Course
from grading.log import Log

RECEIVED = "received"


@dataclass(frozen=True)
class Received:
    """One notebook that came in. `digest` is the SHA-256 of its bytes; `when` is in UTC, None where not known.

    Received("9c1e…", "ada_02_float_formats.ipynb", "hand_in.zip", "plain", when=datetime(2026, 3, 1, tzinfo=UTC))
    """

    digest: str
    file: str
    source: str
    platform: str
    when: datetime.datetime | None = None
    attempt: int = 0
    late: bool = False


def read_history(course: Course, lab: str) -> dict[str, list[Received]]:
    """By student, in the order in which they were accepted."""
    history: dict[str, list[Received]] = defaultdict(list)
    for entry in Log(course).entries():
        if entry.kind == RECEIVED and entry.facts.get("lab") == lab:
            # A line that somebody changed is the audit's to report; here it is passed over.
            with contextlib.suppress(KeyError, TypeError, ValueError):
                history[str(entry.facts["student"])].append(_received(entry.facts))
    return history


def _received(facts: dict[str, Any]) -> Received:
    when = datetime.datetime.fromisoformat(facts["when"]) if facts["when"] else None
    return Received(
        str(facts["submission"]),
        str(facts["file"]),
        str(facts["source"]),
        str(facts["platform"]),
        when and when.astimezone(datetime.UTC),
        int(facts["attempt"]),
        bool(facts["late"]),
    )


def note(course: Course, lab: str, student: str, received: Received) -> None:
    """Add it to the log. Raises OSError where the disk refuses."""
    Log(course).append(
        RECEIVED,
        lab=lab,
        student=student,
        submission=received.digest,
        file=received.file,
        source=received.source,
        platform=received.platform,
        when=received.when.isoformat() if received.when else None,
        attempt=received.attempt,
        late=received.late,
    )


def is_older(new: Received, last: Received, before: list[Received]) -> bool:
    """Whether `new` is an earlier attempt than `last`, as far as numbers, times or its bytes can tell."""
    if new.attempt and last.attempt and new.platform == last.platform:
        return new.attempt < last.attempt
    if new.when and last.when:
        return new.when < last.when
    return any(new.digest == received.digest for received in before)
