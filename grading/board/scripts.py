"""The scripts of a board, as they are published after the freeze: one file each, called by its digest.

A script is a student's text as it was handed in. It is copied and never run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from grading.board.entries import EXERCISE, Candidate
from grading.course import Course
from grading.files import Unreadable, write_output
from grading.submissions import prepare_archived

FOLDER = "leaderboard-scripts"


def write_scripts(course: Course, candidates: Iterable[Candidate], folder: Path) -> tuple[set[str], list[str]]:
    """Write the scripts into FOLDER below `folder`: the digests of those that are there, and why others are not."""
    written, problems = set(), []
    for candidate in candidates:
        digest = candidate.entry.digest
        try:
            text = _script(course, candidate)
        except Unreadable as error:
            problems.append(f"{candidate.student}: the script {digest} is not published: {error}")
            continue
        if hashlib.sha256(text.strip().encode()).hexdigest()[: len(digest)] != digest:
            problems.append(f"{candidate.student}: the script {digest} is not published: its text has another digest")
            continue
        write_output(folder / FOLDER / f"{digest}.py", text if text.endswith("\n") else f"{text}\n")
        written.add(digest)
    return written, problems


def _script(course: Course, candidate: Candidate) -> str:
    prepared = prepare_archived(course, course.lab(EXERCISE[:2]), candidate.student, candidate.attempt)
    return next(cell.source for cell in prepared.merged.cells if cell.id == EXERCISE)
