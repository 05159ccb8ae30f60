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
class OutcomeStyle:
    """colour is the name of a class in the page's style sheet; meaning is what the key of the page says."""

    sign: str
    word: str
    colour: str
    meaning: str


PASSED = OutcomeStyle("✓", "passed", "full", "all points")
PARTIAL = OutcomeStyle("◐", "partial", "partial", "some of the points")
FAILED = OutcomeStyle("✗", "failed", "failed", "a wrong answer")
OUTCOME_STYLES = {
    "passed": PASSED,
    "partial": PARTIAL,
    "failed": FAILED,
    "limit": OutcomeStyle("⊘", "limit", "failed", "stopped: too much time or memory, or the process ended"),
    "unanswered": OutcomeStyle("○", "blank", "blank", "not answered"),
    "suspected": OutcomeStyle("?", "suspected", "alarm", "measurements contradict each other: a person should look"),
    NEEDS_GRADING: OutcomeStyle("✎", "to grade", "waiting", "waits for a person"),
    NOT_HANDED_IN: OutcomeStyle("–", "not in", "none", "nothing was handed in"),
    NOT_GRADED: OutcomeStyle("…", "no grade", "waiting", "not graded yet"),
    "unreadable": OutcomeStyle("!", "unreadable", "alarm", "the file is not a notebook: ask for a new copy"),
    "infrastructure": OutcomeStyle("!", "our fault", "alarm", "the grader failed, not the student: grade again"),
}


def style_of(mark: Mark) -> OutcomeStyle:
    """Where a person or a plain test decided, the points say how it went."""
    if mark.outcome not in (UNSUPERVISED, BY_HAND) and not mark.by_hand:
        return OUTCOME_STYLES.get(mark.outcome, FAILED)
    style = PASSED if mark.is_full else PARTIAL if mark.score else FAILED
    return replace(style, word="by hand") if mark.outcome == BY_HAND else style
