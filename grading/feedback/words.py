"""What the page says of an outcome: a sign, a sentence, and what the student can look at in their own notebook.

Each sentence is for the student, stands alone, and claims nothing that the outcome does not say.
"""

from __future__ import annotations

from dataclasses import dataclass

from grading.supervisor.result import CellResult, ExerciseResult


@dataclass(frozen=True)
class Words:
    """sign and colour (a class in the style sheet) go with the sentence, so that neither says anything alone.

    at_home is what can be checked in the notebook, "" where there is nothing to check.

        Words("✗", "failed", "The public cases pass, but a hidden one does not.", "The check in your notebook …")
    """

    sign: str
    colour: str
    sentence: str
    at_home: str = ""


WAITS = Words("✎", "waiting", "A person will read this answer.")
BLANK_TEXT = Words("○", "blank", "Not answered.")
SET_BY_HAND = "A person set these points."
READ = "A person has read this answer."

_HIDDEN_AT_HOME = (
    "The check in your notebook passes, because it knows the public cases only. Call your function on inputs of your "
    "own that differ from them: other sizes, other values, what the hint names. Work out in another way what should "
    "come out, and compare."
)
_PUBLIC_AT_HOME = (
    "Run the cell with your answer and then the check under it. It runs the same public cases and shows the same "
    "message, so you can change the answer until they pass."
)
_LIMIT_AT_HOME = (
    "Call your function on the smallest input that you can think of, then on larger ones, and watch time and memory. "
    "Where one of them grows much faster than the input, look there."
)
_TEST_AT_HOME = "Run this cell in your notebook: it stops at the line that is not met."


def of_exercise(result: ExerciseResult) -> Words:
    """Of what the grader found; points that a person set do not come into it."""
    shown = result.shown
    if shown.outcome == "passed":
        return Words("✓", "full", "All cases pass.")
    if shown.outcome == "partial":
        return Words("◐", "partial", "All cases pass, and there is more to gain.", _PUBLIC_AT_HOME)
    if shown.outcome == "unanswered":
        return Words("○", "blank", "Not answered.")
    if shown.outcome == "suspected":
        return Words("?", "waiting", "This could not be judged, and a person will look at it.")
    if shown.outcome == "infrastructure":
        return Words("!", "waiting", "The grader failed, not you. Ask for it to be graded again.")
    at_hidden = result.failed_hidden
    if shown.outcome == "limit":
        where = "On a hidden case it was" if at_hidden else "It was"
        return Words("⊘", "failed", f"{where} stopped: too much time or memory, or the process ended.", _LIMIT_AT_HOME)
    if at_hidden:
        return Words("✗", "failed", "The public cases pass, but not every hidden one does.", _HIDDEN_AT_HOME)
    return Words("✗", "failed", _of_public(shown.n_passed, shown.n_cases), _PUBLIC_AT_HOME)


def _of_public(n_passed: int, n_cases: int) -> str:
    if not n_cases:
        return "The answer does not pass."
    if not n_passed:
        return "The public case does not pass." if n_cases == 1 else f"None of the {n_cases} public cases passes."
    return f"{n_passed} of {n_cases} public cases pass{'es' if n_passed == 1 else ''}."


def of_test(result: CellResult | None, score: float, most: float) -> Words:
    """Of a plain test cell, which runs beside the student's code."""
    if score >= most:
        return Words("✓", "full", "The test passes.")
    if score > 0:
        return Words("◐", "partial", "The test gives a part of the points.", _TEST_AT_HOME)
    sentence = "The test was not reached, or did not end." if result and result.skipped else "The test does not pass."
    return Words("✗", "failed", sentence, _TEST_AT_HOME)


def of_points(score: float, most: float) -> Words:
    """Where nothing but the points is known: what a person has graded, or a lab that was graded by other means."""
    if score >= most:
        return Words("✓", "full", "All points.")
    return Words("◐", "partial", "A part of the points.") if score > 0 else Words("✗", "failed", "No points.")
