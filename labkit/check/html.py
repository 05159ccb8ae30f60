"""A verdict as an HTML box, the same in JupyterLab and in the feedback page. Every text is escaped.

Styles are inline, because a notebook's output carries no style sheet; colours follow JupyterLab's theme where
there is one and fall back to a light page elsewhere.
"""

from __future__ import annotations

import re
from html import escape

from labkit.check.text import mark_of, over_budget
from labkit.check.verdict import Verdict
from labkit.units import of_limit

# The theme's own signal colours, so that they can be told apart on dark ground too.
_PASSED = "var(--jp-success-color1,#2e7d32)"
_PARTIAL = "var(--jp-warn-color0,#b26a00)"
_QUIET = "var(--jp-ui-font-color2,#5f6b7a)"
_FAILED = "var(--jp-error-color1,#c62828)"
_COLOURS = {"passed": _PASSED, "partial": _PARTIAL, "unanswered": _QUIET, "infrastructure": _QUIET}
_TINTS = {"passed": "76,175,80", "partial": "255,152,0", "unanswered": "128,128,128", "infrastructure": "128,128,128"}
_FAILED_TINT = "244,67,54"
# The ground is opaque: where a page is dark and knows none of the theme's names, the fallbacks go together.
_BOX = (
    "border:1px solid var(--jp-border-color2,#d0d4da);border-left:4px solid {colour};border-radius:4px;"
    "padding:8px 14px;margin:4px 0;max-width:780px;box-sizing:border-box;"
    "font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;line-height:1.5;"
    "background:linear-gradient(rgba({tint},0.05),rgba({tint},0.05)),var(--jp-layout-color1,#fff);"
    "color:var(--jp-ui-font-color1,#222)"
)
_HEAD = "display:flex;align-items:baseline;gap:8px;font-weight:600"
_MARK = "font-size:15px;line-height:1;color:{colour}"
_CELL = "padding:2px 0;border:none;vertical-align:baseline;text-align:left;line-height:1.5;background:transparent"
_LABEL = (
    f"{_CELL};padding-right:16px;white-space:nowrap;font-size:12px;font-weight:normal;"
    "color:var(--jp-ui-font-color2,#5f6b7a)"
)
_VALUE = (
    f"{_CELL};font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:12px;"
    "white-space:pre-wrap;overflow-wrap:anywhere"
)
_HINT = (
    "margin:8px 0 2px 0;padding:6px 10px;border-radius:3px;background:var(--jp-layout-color1,#fff);"
    "color:var(--jp-ui-font-color1,#222)"
)
_CODE = (
    "font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:12px;background:transparent;color:inherit"
)
# Two generations of MathJax look for these: nbgrader's formgrader loads the second, JupyterLab has the third. What a
# student's program says between dollar signs would be set as a formula, which can hide text and be drawn over other's.
_CLASSES = "labkit-verdict tex2jax_ignore mathjax_ignore"
_TABLE = "border-collapse:collapse;margin:6px 0 0 0;border:none;table-layout:auto;color:inherit"


def as_html(verdict: Verdict) -> str:
    """The verdict as one self-contained `<div>`."""
    colour = _COLOURS.get(verdict.outcome, _FAILED)
    tint = _TINTS.get(verdict.outcome, _FAILED_TINT)
    rows = [*verdict.rows]
    problems = {text for label, text in verdict.rows if label == "problem"}
    # Of what may not be at all, nothing is said, as in the text.
    spent = [budget for budget in verdict.budgets if budget[2]]
    used = [of_limit(*budget) for budget in spent if over_budget(budget[0], budget[3]) not in problems]
    if used:
        rows.append(("used", "; ".join(used)))
    parts = [
        f'<div class="{_CLASSES}" style="{_BOX.format(colour=colour, tint=tint)}">',
        f'<div style="{_HEAD}"><span style="{_MARK.format(colour=colour)}">{mark_of(verdict)}</span>'
        f"<span>{_prose(verdict.headline)}</span></div>",
    ]
    if rows:
        cells = "".join(
            f'<tr style="background:transparent"><th style="{_LABEL}">{escape(label)}</th>'
            f'<td style="{_VALUE}">{escape(text)}</td></tr>'
            for label, text in rows
        )
        parts.append(f'<table style="{_TABLE}">{cells}</table>')
    if verdict.hint:
        parts.append(f'<div style="{_HINT}"><b>Hint.</b> {_prose(verdict.hint)}</div>')
    parts.append("</div>")
    return "".join(parts)


def _prose(text: str) -> str:
    """Escaped, with `names in backticks` set as code."""
    return re.sub(r"`([^`<>]+)`", rf'<code style="{_CODE}">\1</code>', escape(text))
