"""The template engine of the pages: what is not the template's own markup is text, and the same text on every line."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, Undefined
from markupsafe import Markup, escape

from grading.pages.points import in_points
from grading.terminal import lines_in, one_line

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""For browsers (Content-Security-Policy): should a text become markup after all, it loads and runs nothing."""


def policy_with(script: str) -> str:
    """The same, for a page with this one script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{POLICY}; script-src 'sha256-{digest}'"


_HERE = Path(__file__).parent


def template_of(folder: Path, name: str, **filters: object) -> Template:
    """The template `name` in this folder; it may include its own style sheet and `base.css`."""
    environment = Environment(
        loader=FileSystemLoader([folder, _HERE]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["points"] = in_points
    environment.filters["lines"] = lambda text: escape(harmless(text))
    environment.filters["prose"] = _with_code
    environment.filters |= filters
    environment.globals["policy"] = POLICY
    return environment.get_template(name)


def harmless(text: str) -> str:
    """A text of several lines without characters that steer a terminal or turn the direction of writing."""
    return "\n".join(lines_in(text))


def _with_code(text: str) -> Markup:
    """A hint's `names` as code."""
    return Markup(re.sub(r"`([^`<>]+)`", r"<code>\1</code>", str(escape(harmless(text)))))


def _shown(value: object) -> object:
    """What a template shows: markup is the template's own, numbers are numbers, and the rest is text on one line."""
    return value if isinstance(value, Markup | int | float | Undefined) else one_line(value)
