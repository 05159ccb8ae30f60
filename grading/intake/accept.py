"""Put one student's notebook in its place under submitted/, whole or not at all, and keep the one that it replaces.

Whether it may be put there is decided here: it must be a notebook, and no older than the one that is there.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from grading.aside import do_aside
from grading.course import Course
from grading.files import Unreadable, read_plain_file
from grading.intake.arrived import Refusal
from grading.intake.choose import Candidate
from grading.intake.history import Received, is_older, note
from grading.intake.names import folded
from grading.intake.secret import SECRET
from grading.intake.store import archive_bytes
from grading.intake.swap import swap_folder
from grading.intake.timestamp import TIMESTAMP, read_time
from grading.rebuild.submission import MAX_BYTES, parse_submission

NEW, REPLACES, RETIMED, UNCHANGED = "new", "replaces", "new time", "unchanged"
SHORT = 12
SECONDS = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True)
class Accepted:
    """What happened with a candidate; `replaced` is the SHA-256 of the notebook that was there before.

    when: the time of submission that is noted under submitted/ now, in UTC, None where there is none. other: the time
    that this source gives, where that is another and was not taken.
    """

    outcome: str
    digest: str
    size_bytes: int
    when: datetime.datetime | None
    replaced: str = ""
    other: datetime.datetime | None = None

    def __str__(self) -> str:
        if self.other:
            return f"{self.outcome}, its time too (here it is {self.other:{SECONDS}}: --force takes that)"
        return f"{self.outcome} {self.replaced[:SHORT]}".strip()


def accept(
    course: Course,
    lab: str,
    candidate: Candidate,
    source: str,
    before: list[Received],
    names: dict[str, str],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Accepted:
    """Take this notebook from `source`, as the student's newest unless that is known to be newer.

    `before` is what was received from the student, `names` the students there are (`names_in`).

    Raises Refusal with the reason, and OSError where the disk refuses; then nothing changed.
    """
    student = candidate.student
    _refuse_place(course, lab, student, names)
    data = candidate.entry.read()
    _refuse_non_notebook(data)
    digest = hashlib.sha256(data).hexdigest()
    received = Received(
        digest, candidate.entry.path, source, candidate.platform, candidate.when, candidate.attempt, candidate.late
    )
    there = _there(course, lab, student)
    if there is None:
        done = Accepted(NEW, digest, len(data), candidate.when)
    elif there == data:
        noted = _noted_time(course, lab, student)
        # A file that was only copied again has a new time too: nobody becomes late by that unasked.
        other = candidate.when if candidate.when != noted else None
        if not (other and force):
            # A run that was killed may have put it there without saying so.
            if not dry_run and not (before and before[-1].digest == digest):
                archive_bytes(course, lab, data)
                note(course, lab, student, replace(received, when=noted))
            return Accepted(UNCHANGED, digest, len(data), noted, other=other)
        done = Accepted(RETIMED, digest, len(data), other)
    else:
        done = Accepted(REPLACES, digest, len(data), candidate.when, hashlib.sha256(there).hexdigest())
        last = _last(course, lab, student, done.replaced, before)
        if is_older(received, last, before) and not force:
            raise Refusal(f"it is older than what is there ({done.replaced[:SHORT]}): --force takes it all the same")
    if not dry_run:
        if there is not None:
            archive_bytes(course, lab, there)
        archive_bytes(course, lab, data)
        _put(course.submitted(lab, student), data, candidate.when, candidate.secret)
        note(course, lab, student, received)
    return done


def names_in(course: Course) -> dict[str, str]:
    """Who has a folder under submitted/, by their folded name."""
    top = course.root / "submitted"
    return {folded(name): name for name in os.listdir(top)} if top.is_dir() else {}


def _refuse_place(course: Course, lab: str, student: str, names: dict[str, str]) -> None:
    """Never through a link, and never beside a folder that some disks would take for the same."""
    twin = names.get(folded(student), student)
    if twin != student:
        raise Refusal(f'the course already has the student "{twin}", which is nearly the same name: use --roster')
    folder = course.submitted(lab, student).parent
    for path in (folder, folder.parent):
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise Refusal(f"{path.relative_to(course.root)} is a link or no folder: look at it and remove it")


def _refuse_non_notebook(data: bytes) -> None:
    try:
        # The name is what the message begins with.
        do_aside("it", parse_submission, data, "it")
    except Unreadable as error:
        raise Refusal(str(error)) from error


def _there(course: Course, lab: str, student: str) -> bytes | None:
    path = course.submitted(lab, student)
    if not os.path.lexists(path):
        return None
    try:
        return read_plain_file(path, MAX_BYTES)
    except (Unreadable, OSError) as error:
        raise Refusal(f"what is there cannot be kept ({error}): look at {path.relative_to(course.root)}") from error


def _last(course: Course, lab: str, student: str, digest: str, before: list[Received]) -> Received:
    """What is known of the notebook that is there, also where somebody put it there by hand."""
    if before and before[-1].digest == digest:
        return before[-1]
    return Received(digest, "", "", "", _noted_time(course, lab, student))


def _noted_time(course: Course, lab: str, student: str) -> datetime.datetime | None:
    """The time of submission beside the notebook that is there, in UTC; None where none can be read."""
    try:
        return read_time(course.submitted(lab, student).parent)
    except (Unreadable, OSError):
        return None


def _put(path: Path, data: bytes, when: datetime.datetime | None, secret: str) -> None:
    folder = path.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".incoming-{folder.name}-{secrets.token_hex(4)}")
    # Left over from a run that was killed; one run at a time has the course.
    for stale in folder.parent.glob(".incoming-*"):
        shutil.rmtree(stale, ignore_errors=True)
    try:
        draft.mkdir()
        (draft / path.name).write_bytes(data)
        if when:
            (draft / TIMESTAMP).write_text(f"{when:%Y-%m-%d %H:%M:%S.%f} UTC")
        if secret:
            (draft / SECRET).write_text(secret)
        swap_folder(draft, folder)
    finally:
        # The draft where it failed, else the earlier submission, which is kept by now.
        shutil.rmtree(draft, ignore_errors=True)
