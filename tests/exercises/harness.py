"""Examine an answer given as source text, on public or hidden cases, in this process.

Trusted answers only: the supervised path has tests of its own.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from grading import own_labs
from grading.demo.examples import solution_of
from grading.hidden import Secret
from grading.tryout import cases as tryout
from grading.tryout.cases import answers_in, running
from labkit import exercises
from labkit.check.api import examine
from labkit.check.verdict import Verdict
from labkit.oracles import oracle_of
from labkit.spec import Exercise

__all__ = [
    "PATIENCE_S",
    "SECRET",
    "TESTS",
    "CaseSet",
    "answers_in",
    "hidden_verdict",
    "public_verdict",
    "solution_of",
    "stub_of",
]
TESTS = Path(__file__).resolve().parents[1]
SECRET = Secret(b"a course key for the tests", "lab", "ada", "first")
PATIENCE_S = 120.0
"""For a run on a busy machine: none of the known answers ends because its wall time is over."""


def patient(exercise: Exercise) -> Exercise:
    """The same exercise for a machine that others use as well."""
    return replace(exercise, run=replace(exercise.run, wall_s=max(PATIENCE_S, exercise.run.wall_s)))


class CaseSet(tryout.CaseSet):
    """As the author's, with time to wait for the machine."""

    def __init__(self, exercise_id: str, secret: Secret | None = None, memory_cases: bool = False) -> None:
        super().__init__(exercise_id, secret, memory_cases)
        self.exercise = patient(self.exercise)


def public_verdict(exercise_id: str, source: str) -> Verdict:
    """What the student reads under the exercise."""
    with running(exercise_id, source) as found:
        return examine(patient(exercises.find(exercise_id)), oracle_of(exercise_id), found, [source])


def hidden_verdict(exercise_id: str, source: str, secret: Secret = SECRET, memory_cases: bool = False) -> Verdict:
    """What the grader concludes from hidden cases drawn from `secret`.

    memory_cases: also from the large ones whose memory the grader bounds.
    """
    cases = CaseSet(exercise_id, secret, memory_cases)
    return cases.verdict(cases.runs(source))


def stub_of(exercise_id: str) -> str:
    """The answer's cell as students get it."""
    (path,) = (own_labs.root_of(exercise_id[:2]) / "notebooks").glob(f"{exercise_id[:2]}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    (cell,) = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise_id]
    return "".join(cell["source"])
