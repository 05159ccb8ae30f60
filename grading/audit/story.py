"""How a student came by a grade, in a few lines for a terminal, from the log and the gradebook alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grading.gradebook.standing import Standing
from grading.log.entry import LogEntry
from labkit.units import by_name

SHORT = 16
WHAT_COUNTS = {
    "submission": "the submission",
    "grader": "the grader's code",
    "environment": "the environment",
    "limits": "the limits",
    "isolation": "the isolation",
    "job": "the lab's template or the job's steps",
    "outcomes": "the outcomes",
    "points": "the points",
    "extra": "the extra credit",
    "penalty": "the late penalty",
}
"""By the name of a fact, what a person calls it; the rest of an entry may differ between two equal grades."""


def story_of(lab: str, student: str, entries: Iterable[LogEntry], row: Standing | None) -> list[str]:
    """The lines about one student's grade in one lab; says so where the log has none."""
    theirs = [entry for entry in entries if (entry.facts.get("lab"), entry.facts.get("student")) == (lab, student)]
    graded = [entry for entry in theirs if entry.kind == "graded"]
    lines = [f"{lab}, {student}: " + (_summary(graded[-1]) if graded else "no grade in the log")]
    if graded:
        lines += _grade(graded[-1].facts)
    if row is not None and row.by_hand:
        lines.append(_line("by hand", ", ".join(f"{cell} {points:g}" for cell, points in sorted(row.by_hand.items()))))
    earned = (graded[-1].facts.get("extra") or {}) if graded else {}
    by_person = {cell: points for cell, points in row.extra.items() if cell not in earned} if row is not None else {}
    if by_person:
        lines.append(_line("extra", ", ".join(f"{cell} {points:g}" for cell, points in sorted(by_person.items()))))
    first = graded[0].n if graded else 0
    lines += [_line("" if index else "history", _event(entry, entry.n == first)) for index, entry in enumerate(theirs)]
    return lines


def _summary(entry: LogEntry) -> str:
    return f"{_total(entry.facts):g} points, given {_when(entry)} (entry {entry.n})"


def _total(facts: Mapping[str, Any]) -> float:
    given = sum(points for points in (facts.get("points") or {}).values() if points is not None)
    given += sum((facts.get("extra") or {}).values())
    return max(given - (facts.get("penalty") or 0.0), 0.0)


def _grade(facts: Mapping[str, Any]) -> list[str]:
    extra = facts.get("extra") or {}
    points = ", ".join(
        f"{cell} {extra[cell]:g} extra" if cell in extra else f"{cell} {_given(value)}"
        for cell, value in (facts.get("points") or {}).items()
    )
    penalty = facts.get("penalty") or 0.0
    versions = ", ".join(f"{name} {text}" for name, text in (facts.get("environment") or {}).items())
    limits = facts.get("limits") or {}
    pairs = [
        ("submission", f"SHA-256 {facts.get('submission')}"),
        ("job", str(facts.get("job"))),
        ("grader", f"source {str(facts.get('grader'))[:SHORT]}; {versions}"),
        ("isolation", str(facts.get("isolation"))),
        ("limits", ", ".join(by_name(name, value) for name, value in (limits.get("cells") or {}).items())),
        *_exercise_limits(limits.get("exercises") or {}),
        ("usage", ", ".join(by_name(name, value) for name, value in (facts.get("usage") or {}).items())),
        ("outcomes", ", ".join(f"{name} {outcome}" for name, outcome in (facts.get("outcomes") or {}).items())),
        ("points", points + (f"; late penalty {penalty:g}" if penalty else "")),
        ("extension", f"due {facts['extended']} UTC" if facts.get("extended") else ""),
        *(("note", note) for note in facts.get("notes") or ()),
    ]
    return [_line(label, text) for label, text in pairs if text]


def _exercise_limits(exercises: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [
        ("", f"{name}: " + ", ".join(by_name(what, value) for what, value in found.items() if value is not None))
        for name, found in exercises.items()
    ]


def _given(points: float | None) -> str:
    return "waits for a person" if points is None else f"{points:g}"


def _event(entry: LogEntry, is_first: bool) -> str:
    facts = entry.facts
    text = f"{_when(entry)}  entry {entry.n}: {entry.kind}"
    if entry.kind == "graded":
        text += f", {_total(facts):g} points"
        if "changed" in facts and not is_first:
            names = [WHAT_COUNTS.get(name, name) for name in facts["changed"]]
            text += f"; changed: {', '.join(names)}" if names else "; nothing that counts had changed"
        return text + (f"; {_regrade(facts['regraded'])}" if "regraded" in facts else "")
    if entry.kind == "regrade refused":
        return f"{text}, {_regrade(facts)}; lower: {', '.join(facts.get('lower') or ())}"
    # Whatever else was noted, as it was noted.
    rest = ", ".join(f"{name} {value}" for name, value in facts.items() if name not in ("lab", "student"))
    return f"{text}; {rest}" if rest else text


def _regrade(facts: Mapping[str, Any]) -> str:
    before, after = ((facts.get(name) or {}).get("total", 0.0) for name in ("before", "after"))
    return f"regraded ({facts.get('reason')}): {before:g} points before, {after:g} after"


def _when(entry: LogEntry) -> str:
    return entry.time[:19].replace("T", " ") + " UTC"


def _line(label: str, text: str) -> str:
    return f"  {label:<12}{text}".rstrip()
