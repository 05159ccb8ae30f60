"""LaTeX becomes MathML of listed parts, and whatever cannot be set so is shown as it was written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grading.feedback.formulas import ATTRIBUTES, ELEMENTS, MOST, as_mathml

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"


def texts() -> list[str]:
    """The course's text cells, one a lab."""
    found = []
    for path in sorted(SOLUTIONS.glob("[0-9][0-9]_*.py")):
        lines = path.read_text(encoding="utf-8").split("\n")
        found.append("\n".join(line[2:] for line in lines if line.startswith("# ")))
    return found


def formulas() -> list[tuple[str, bool]]:
    pattern = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w`])\$(?![\s`])([^$`]{1,200}?)(?<![\s\\`])\$(?!\w)", re.DOTALL)
    return [(one[1] or one[2], bool(one[1])) for text in texts() for one in pattern.finditer(text)]


def test_every_formula_of_the_course_is_set() -> None:
    found = formulas()
    assert len(found) > 1000
    assert [source for source, display in found if not as_mathml(source, display).startswith("<math")] == []


def test_a_fraction_a_power_and_a_sum() -> None:
    text = as_mathml(r"\frac{1}{2} \sum_i x_i^2")
    assert text.startswith('<math display="inline">') and text.endswith("</math>")
    assert "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>" in text
    assert "<msubsup>" in text
    assert as_mathml("x", display=True).startswith('<math display="block">')


@pytest.mark.parametrize(
    "source",
    [
        r"\href{javascript:alert(1)}{x}",
        r"\phantom{all of it is gone}",
        r"\text{</mtext><script>alert(1)</script>}",
        r"\style{position:fixed}{x}",
        r"\class{skip}{x}",
        r"\color{white}{x}",
        r"\hspace{-99em} x",
        r"\text{<img src=x onerror=alert(1)>}",
        r"\frac{1}",
        "{",
        "}" * 500,
        "{" * 3000 + "}" * 3000,
        "x" * (MOST + 1),
        "\x00 \x1b",
    ],
)
def test_nothing_but_listed_parts_comes_out(source: str) -> None:
    text = as_mathml(source)
    for name, attributes in re.findall(r"<([a-z!]+)((?:\s[^<>]*)?)>", text):
        assert name in ELEMENTS or (name == "code" and text.startswith("<code>"))
        assert set(re.findall(r" ([a-z]+)=", attributes)) <= ATTRIBUTES
    assert "-99em" not in text or text.startswith("<code>")
    assert "<script" not in text and "<img" not in text


def test_a_link_is_no_link_and_what_would_hide_a_part_is_shown_as_it_was_written() -> None:
    assert "<mi>x</mi>" in as_mathml(r"\href{https://example.org}{x}")
    assert as_mathml(r"\phantom{gone} & <b>") == r"<code>$\phantom{gone} &amp; &lt;b&gt;$</code>"
    assert as_mathml("x" * 2001, display=True) == f"<code>$${'x' * 2001}$$</code>"
