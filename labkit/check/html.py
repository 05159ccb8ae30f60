"""A verdict as an HTML box, the same in JupyterLab and in the feedback page. Every text is escaped.

Styles are inline, because a notebook's output carries no style sheet; colours follow JupyterLab's theme where
there is one and fall back to a light page elsewhere.
"""

from __future__ import annotations

from html import escape

from labkit.check.judge import amount
from labkit.check.verdict import Verdict

_COLOURS = {"passed": "#2e7d32", "partial": "#b26a00", "unanswered": "#5f6b7a", "infrastructure": "#5f6b7a"}
_FAILED = "#c62828"
_BOX = (
    "border:1px solid var(--jp-border-color2,#d0d4da);border-left:4px solid {colour};border-radius:4px;"
    "padding:8px 14px;margin:4px 0;max-width:780px;font-family:var(--jp-ui-font-family,system-ui,sans-serif);"
    "font-size:13px;line-height:1.5;background:var(--jp-layout-color1,#fff);color:var(--jp-ui-font-color1,#222)"
)
_LABEL = (
    "padding:1px 14px 1px 0;vertical-align:top;text-align:left;white-space:nowrap;font-weight:normal;"
    "color:var(--jp-ui-font-color2,#5f6b7a);background:transparent"
)
_VALUE = (
    "padding:1px 0;text-align:left;font-family:var(--jp-code-font-family,ui-monospace,monospace);"
    "font-size:12px;word-break:break-word;background:transparent"
)
_HINT = (
    "margin-top:6px;padding:6px 10px;border-radius:3px;background:var(--jp-layout-color2,#f4f5f7);"
    "color:var(--jp-ui-font-color1,#222)"
)
_TABLE = "border-collapse:collapse;margin:6px 0 0 0;border:none;font-size:13px;color:inherit"


def as_html(verdict: Verdict) -> str:
    """The verdict as one self-contained `<div>`."""
    colour = _COLOURS.get(verdict.outcome, _FAILED)
    mark = {"passed": "✓", "partial": "◐", "unanswered": "○"}.get(verdict.outcome, "✗")
    rows = [*verdict.rows]
    if verdict.score > 0:
        rows += [
            (name.replace("_", " "), f"{amount(measured, unit)} of {amount(limit, unit)}")
            for name, measured, limit, unit in verdict.budgets
        ]
    parts = [
        f'<div class="labkit-verdict" style="{_BOX.format(colour=colour)}">',
        f'<div><b style="color:{colour}">{mark}</b>&nbsp; <b>{escape(verdict.headline)}</b></div>',
    ]
    if rows:
        cells = "".join(
            f'<tr style="background:transparent"><th style="{_LABEL}">{escape(label)}</th>'
            f'<td style="{_VALUE}">{escape(text)}</td></tr>'
            for label, text in rows
        )
        parts.append(f'<table style="{_TABLE}">{cells}</table>')
    if verdict.hint:
        parts.append(f'<div style="{_HINT}"><b>Hint.</b> {escape(verdict.hint)}</div>')
    parts.append("</div>")
    return "".join(parts)
