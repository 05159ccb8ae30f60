"""Text cells as HTML: the course's as it was written, a student's or a person's without any HTML of its own.

Formulas become MathML. Headings are moved to where they belong in the page, and no level is left out.
"""

from __future__ import annotations

from html import escape

from markupsafe import Markup
from mistune import import_plugin
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from grading.feedback.formulas import as_mathml
from grading.pages import harmless

PLUGINS = ("strikethrough", "table", "url", "def_list")
"""What a notebook's texts may have beyond plain Markdown; boxes to tick are left out, which nobody can tick here."""

BREAK = "\u200b"
"""A space of no width: `rebuild` breaks with it what could be a tag."""

TOP = 3
"""The level of a text's highest headings: the page's title is 1, the heading over the notebook 2."""


def code_as_html(source: str, language: str = "ipython3") -> Markup:
    """Coloured code, of which every character is text."""
    text = harmless(source)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return Markup(f'<pre class="code"><code>{escape(text)}</code></pre>')
    return Markup(f'<pre class="code"><code>{highlight(text, lexer, HtmlFormatter(nowrap=True))}</code></pre>')


class Prose:
    """The texts of one page, in its order: what a heading's level may be depends on the one before."""

    def __init__(self) -> None:
        self._level = TOP - 1

    def under(self, level: int) -> None:
        """The page itself has put a heading of this level here."""
        self._level = level

    def of_course(self, source: str, attachments: dict[str, dict[str, str]] | None = None) -> Markup:
        """Trusted: it may contain HTML."""
        return self._rendered(source, is_trusted=True, attachments=attachments)

    def of_person(self, source: str) -> Markup:
        """Not trusted: HTML in it is shown as text, pictures by their names."""
        # The signs that rebuilding has put into what could be a tag, a link or a picture stay.
        parts = (harmless(part) for part in source.split(BREAK))
        return self._rendered(BREAK.join(parts), is_trusted=False)

    def heading_level(self, wanted: int) -> int:
        """The level of the page at which a text's heading of this level stands."""
        self._level = min(max(wanted + 1, TOP), self._level + 1, 6)
        return self._level

    def _rendered(self, source: str, is_trusted: bool, attachments: dict[str, dict[str, str]] | None = None) -> Markup:
        renderer = _Renderer(self, is_trusted, attachments or {})
        plugins = (import_plugin(name) for name in PLUGINS)
        return Markup(MarkdownWithMath(renderer=renderer, plugins=plugins).render(source))


class _Renderer(IPythonRenderer):
    def __init__(self, prose: Prose, is_trusted: bool, attachments: dict[str, dict[str, str]]) -> None:
        super().__init__(
            escape=not is_trusted,
            allow_harmful_protocols=False,
            exclude_anchor_links=True,
            attachments=attachments,
        )
        self.prose, self.is_trusted = prose, is_trusted

    def heading(self, text: str, level: int, **attrs: object) -> str:
        shown = self.prose.heading_level(level)
        return f"<h{shown}>{text}</h{shown}>\n"

    def block_code(self, code: str, info: str | None = None) -> str:
        return code_as_html(code.rstrip("\n"), (info or "text").split()[0] if (info or "").strip() else "text")

    def table(self, text: str) -> str:
        return f'<div class="scroll" tabindex="0" role="group" aria-label="table"><table>{text}</table></div>\n'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        if not self.is_trusted:
            return f"[picture: {text}]"
        return super().image(text, url, title)

    def block_math(self, body: str) -> str:
        formula = as_mathml(body, display=True)
        return f'<span class="formula scroll" tabindex="0" role="group" aria-label="formula">{formula}</span>'

    def inline_math(self, body: str) -> str:
        return as_mathml(body)

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")
