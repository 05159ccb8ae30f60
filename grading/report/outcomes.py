"""How an outcome looks on the page: a sign, a word and a class of colour, so that none of them has to be guessed.

The words are for people; the record and the exports keep the outcomes' own names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from grading.report.record import (
    BY_HAND,
    NEEDS_GRADING,
    NOT_GRADED,
    NOT_HANDED_IN,
    UNSUPERVISED,
    Mark,
)


@dataclass(frozen=True)
class Look:
    """colour is the name of a class in the page's style sheet; meaning is what the key of the page says."""

    sign: str
    word: str
    colour: str
    meaning: str


PASSED = Look("✓", "passed", "full", "all points")
PARTIAL = Look("◐", "partial", "partial", "some of the points")
FAILED = Look("✗", "failed", "failed", "a wrong answer")
LOOKS = {
    "passed": PASSED,
    "partial": PARTIAL,
    "failed": FAILED,
    "limit": Look("⊘", "limit", "failed", "stopped: too much time or memory, or the process ended"),
    "unanswered": Look("○", "blank", "blank", "not answered"),
    "suspected": Look("?", "suspected", "alarm", "measured values do not fit together: a person should look"),
    NEEDS_GRADING: Look("✎", "to grade", "waiting", "waits for a person"),
    NOT_HANDED_IN: Look("–", "not in", "none", "nothing was handed in"),
    NOT_GRADED: Look("…", "no grade", "waiting", "not graded yet"),
    "unreadable": Look("!", "unreadable", "alarm", "the file is no notebook: ask for a new copy"),
    "infrastructure": Look("!", "our fault", "alarm", "the grader failed, not the student: grade again"),
}


def look_of(mark: Mark) -> Look:
    """Where a person or a plain test decided, the points say how it went."""
    if mark.outcome not in (UNSUPERVISED, BY_HAND) and not mark.by_hand:
        return LOOKS.get(mark.outcome, FAILED)
    look = PASSED if mark.is_full else PARTIAL if mark.score else FAILED
    return replace(look, word="by hand") if mark.outcome == BY_HAND else look
