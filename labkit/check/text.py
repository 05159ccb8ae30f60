"""A verdict as text: one line when it passes, and what it came to where an exercise says that; at most twelve when it
does not.
"""

from __future__ import annotations

import textwrap

from labkit.check.verdict import Verdict
from labkit.measures import measure_of
from labkit.units import of_limit

WIDTH = 96
MAX_LINES = 12
_MARKS = {"passed": "✓", "partial": "◐", "unanswered": "○"}
_INDENT = 12
_MOST_LINES = {"case": 3, "input": 4, "problem": 3}
"""Of a row, by its label; two of any other."""
_WHOLE = {"played"}
"""Rows whose lines stand under one another: all of them are shown as they are, or none."""


def as_text(verdict: Verdict) -> str:
    """The verdict in a terminal's words, no line longer than 96 characters."""
    spent = _spent(verdict) if verdict.score > 0 else ""
    lines = _wrap(f"{mark_of(verdict)} ", verdict.headline + spent, 2)
    hint = _wrap("  hint".ljust(_INDENT), verdict.hint, _INDENT, max_lines=6) if verdict.hint else []
    for label, text in verdict.rows:
        if label in _WHOLE:
            shown = _as_it_is(f"  {label}".ljust(_INDENT), text)
            lines += shown if len(lines) + len(shown) + len(hint) <= MAX_LINES else []
            continue
        lines += _wrap(f"  {label}".ljust(_INDENT), text, _INDENT, max_lines=_MOST_LINES.get(label, 2))
    return "\n".join(lines[: MAX_LINES - len(hint)] + hint)


def _wrap(lead: str, text: str, indent: int, max_lines: int | None = None) -> list[str]:
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * indent,
        max_lines=max_lines,
        placeholder=" ...",
        # A hyphen is more often a minus sign than the end of a word.
        break_on_hyphens=False,
    )
    return lines or [lead.rstrip()]


def _as_it_is(lead: str, text: str) -> list[str]:
    return [(lead if number == 0 else " " * _INDENT) + line for number, line in enumerate(text.splitlines())]


def mark_of(verdict: Verdict) -> str:
    """One sign for the outcome."""
    return _MARKS.get(verdict.outcome, "✗")


def _spent(verdict: Verdict) -> str:
    """What the answer used of its budgets, for a line that passed; of what may not be at all, nothing is said."""
    parts = [of_limit(name, used, limit, unit) for name, used, limit, unit in verdict.budgets if limit]
    return f" Used: {'; '.join(parts)}." if parts else ""


def over_budget(name: str, unit: str, at_least: bool = False) -> str:
    """What is wrong where a budget is not kept, be it the most or the least of something. A unit that is not the
    measure's own says what is meant: seconds that count rounds are rounds."""
    what = name if unit == measure_of(name).unit else unit
    return f"{'too little' if at_least else 'over budget'}: {what.replace('_', ' ')}"
