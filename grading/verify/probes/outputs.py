"""What came out of a submission: did it carry a secret, a sign of success, or more than it may print?

Looks at everything that is kept or shown of it: the stored result, the graded notebook's folder, the feedback page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from grading.course import Course
from grading.supervisor import SubmissionResult
from grading.verify.attacks import MARK

MAX_OUTPUT_BYTES = 2 * 2**20
"""The promised 1 MiB of printed text, and room for the notebook around it and its escapes."""

MOST_SAID = 3


def results_of(course: Course, lab: str) -> dict[str, SubmissionResult]:
    """The stored results by student."""
    found = {}
    for path in sorted((course.root / ".grading" / "results" / lab).glob("*.json")):
        result = SubmissionResult.from_json(json.loads(path.read_text()))
        found[result.student] = result
    return found


def kept_of(course: Course, lab: str, student: str, result: SubmissionResult | None) -> dict[str, str]:
    """All texts that grading this submission left behind, by where they stand."""
    found = {"the stored result": json.dumps(result.to_json(), ensure_ascii=False)} if result else {}
    for folder in ("autograded", "feedback"):
        for path in sorted((course.root / folder / student / lab).rglob("*")):
            if path.is_file() and not path.is_symlink():
                with path.open(errors="replace") as file:
                    found[f"{folder}/{path.name}"] = file.read(2 * MAX_OUTPUT_BYTES)
    return found


def secrets_in(kept: Mapping[str, str], canaries: Mapping[str, str]) -> Iterator[str]:
    """One text for each secret that is in what was kept."""
    for where, text in kept.items():
        for what, canary in canaries.items():
            if canary in text:
                yield f"{what} is in {where}"


def breaches_in(result: SubmissionResult) -> Iterator[str]:
    """What the attack itself says it reached, from its cells' output, their errors and the verdicts."""
    texts = [cell.printed for cell in result.cells.values()]
    texts += [cell.error or "" for cell in result.cells.values()]
    for exercise in result.exercises.values():
        verdicts = [exercise.public, *([exercise.hidden] if exercise.hidden else [])]
        texts += [value for verdict in verdicts for _, value in verdict.rows]
    lines = [line.partition(MARK)[2].strip()[:100] for text in texts for line in text.splitlines() if MARK in line]
    yield from lines[:MOST_SAID]
    if len(lines) > MOST_SAID:
        yield f"and {len(lines) - MOST_SAID} more"


def too_much(kept: Mapping[str, str]) -> Iterator[str]:
    """One text for each thing that was kept and is larger than it may be."""
    for where, text in kept.items():
        if len(text.encode(errors="replace")) > MAX_OUTPUT_BYTES:
            yield f"{where} has more than {MAX_OUTPUT_BYTES:,} bytes"
