"""One submission, ready to be graded, as plain data, and the key under which its result is stored.

Where a job runs, and where its result goes, is the caller's business. Making one needs no torch.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import grading
import labkit
from grading import own_labs
from grading.supervisor.packages import versions
from grading.worker.protocol.steps import Step, step_to_tree

RESULT_BEARING = (
    *("hidden", "isolation", "rebuild", "supervisor", "worker"),
    *("aside.py", "files.py", "own_labs.py", "submissions.py"),
)
"""What of the grader a result depends on; the rest stores, writes and shows it."""


@dataclass(frozen=True)
class Job:
    """A submission ready to be run: steps for the worker, the program's text for the rules judged on text.

    `Job("02_sums", "ada", "5c1e...", (RunCode("a", "x = 1"), ...), ("x = 1", ...), ("cell 02-sum is missing: ...",),
    b"...")`; attempt is the digest of what was submitted, notes are for the instructor.
    """

    lab: str
    student: str
    attempt: str
    steps: tuple[Step, ...]
    program: tuple[str, ...]
    notes: tuple[str, ...]
    course_key: bytes

    @property
    def key(self) -> str:
        """Everything that the result depends on, as one digest."""
        steps = list(map(step_to_tree, self.steps))
        parts = (self.lab, self.student, self.attempt, steps, self.program, grader_digest())
        text = json.dumps(parts, sort_keys=True).encode()
        return hashlib.sha256(self.course_key + text).hexdigest()


@functools.cache
def grader_digest() -> str:
    """A digest of the source and of the versions that could change a result."""
    digest = hashlib.sha256(json.dumps(versions()).encode())
    ours = Path(grading.__file__).parent
    roots = [Path(labkit.__file__).parent, *(ours / name for name in RESULT_BEARING)]
    for own in own_labs.folders():
        roots += [own / "labkit", own / "grading"]
    for root in roots:
        for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root.parent)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
