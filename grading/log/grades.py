"""The entries of the log that are about grades. What such an entry says:

    {"n": 7, "time": "2026-03-02T11:20:05.118+00:00", "kind": "graded", "lab": "02_float_formats", "student": "ada",
     "submission": "9c1e…", "job": "5f3c…", "result": "e2b0…", "grader": "41d7…",
     "environment": {"Python": "3.12.3", "torch": "2.13.0", "nbgrader": "0.9.6", "machine": "Linux x86_64", …},
     "limits": {"cells": {"one_cell_s": 30.0, …}, "exercises": {"02-decode": {"wall_s": 10, …}, …}},
     "isolation": "kernel", "usage": {"wall_s": 3.1, "cpu_s": 2.4}, "outcomes": {"02-decode": "passed", …},
     "points": {"02-decode-check": 2.0, "02-open": null, …}, "extra": {"02-merge-smallest-check": 0.9}, "penalty": 0.0,
     "notes": [], "changed": ["submission"],
     "previous": "88d1…", "digest": "1c9a…"}

submission, result, job and grader are SHA-256; a point of null waits for a person. Where a student had an extension,
"extended" is their own due date; "handed_in" is when the work came, where a time was noted beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from grading.log.entry import LogEntry


def last_grades(entries: Iterable[LogEntry], lab: str | None = None) -> dict[tuple[str, str], LogEntry]:
    """The last "graded" entry of every lab and student, or of one lab's students."""
    last = {}
    for entry in entries:
        if entry.kind == "graded" and lab in (None, entry.facts.get("lab")):
            last[entry.facts.get("lab", ""), entry.facts.get("student", "")] = entry
    return last
