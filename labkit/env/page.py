"""The findings as text for a terminal and as a table for a notebook.

Styles are inline and follow JupyterLab's theme, as in the box of a check.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from labkit.env.finding import EnvFinding
from labkit.env.survey import look
from labkit.shell import show

_MARKS = {"ok": "✓", "note": "○", "red": "✗"}
_COLOURS = {
    "ok": "var(--jp-success-color1,#2e7d32)",
    "note": "var(--jp-warn-color0,#b26a00)",
    "red": "var(--jp-error-color1,#c62828)",
}
_NAME_WIDTH = 18
_PAGE = (
    "border:1px solid var(--jp-border-color2,#d0d4da);border-radius:4px;padding:8px 14px;margin:4px 0;"
    "max-width:780px;font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;line-height:1.5;"
    "background:var(--jp-layout-color1,#fff);color:var(--jp-ui-font-color1,#222)"
)
_TABLE = "border-collapse:collapse;border:none;margin:0 0 6px 0;font-size:13px;color:inherit"
_CELL = "padding:2px 14px 2px 0;text-align:left;vertical-align:top;background:transparent"
_NAME = f"{_CELL};font-weight:normal;white-space:nowrap;color:var(--jp-ui-font-color2,#5f6b7a)"
_CODE = (
    "font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:12px;padding:1px 5px;border-radius:3px;"
    "background:var(--jp-layout-color2,#f4f5f7);color:var(--jp-ui-font-color1,#222)"
)


def environment() -> None:
    """Show the environment page: a table in a notebook, text elsewhere."""
    show(Page(look()))


class Page:
    """Findings that a notebook shows as a table, and anything else as text."""

    def __init__(self, findings: Sequence[EnvFinding]) -> None:
        self.findings = tuple(findings)

    def __repr__(self) -> str:
        return as_text(self.findings)

    def _repr_html_(self) -> str:
        return as_html(self.findings)


def as_text(findings: Sequence[EnvFinding]) -> str:
    """One line a finding, its fix below it."""
    lines = []
    for one in findings:
        lines.append(f"{_MARKS[one.state]} {one.name:{_NAME_WIDTH}} {one.value}")
        if one.fix:
            lines.append(f"{'':{_NAME_WIDTH + 3}}fix: {one.fix}")
    return "\n".join([*lines, summary(findings)])


def as_html(findings: Sequence[EnvFinding]) -> str:
    """One self-contained `<div>`; every text is escaped."""
    rows = "".join(_row(one) for one in findings)
    table = f'<table style="{_TABLE}">{rows}</table>'
    return f'<div class="labkit-environment" style="{_PAGE}">{table}<b>{escape(summary(findings))}</b></div>'


def _row(one: EnvFinding) -> str:
    fix = f'<div>Fix: <code style="{_CODE}">{escape(one.fix)}</code></div>' if one.fix else ""
    mark = f'<b style="color:{_COLOURS[one.state]}" title="{one.state}">{_MARKS[one.state]}</b>'
    return (
        f'<tr style="background:transparent"><td style="{_CELL}">{mark}</td>'
        f'<th style="{_NAME}">{escape(one.name)}</th>'
        f'<td style="{_CELL};word-break:break-word">{escape(one.value)}{fix}</td></tr>'
    )


def summary(findings: Sequence[EnvFinding]) -> str:
    """What the states add up to, in one sentence or two."""
    n_red = sum(one.state == "red" for one in findings)
    n_notes = sum(one.state == "note" for one in findings)
    notes = f" {n_notes} note{'s' * (n_notes > 1)} (○): of use later, not needed to begin." if n_notes else ""
    if n_red:
        return f"{n_red} line{'s' * (n_red > 1)} to fix (✗) before you start.{notes}"
    return f"Ready: nothing to fix.{notes}"
