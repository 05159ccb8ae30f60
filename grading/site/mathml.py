"""Formulas as MathML, which browsers set by themselves: a renderer for Sphinx that needs no script.

A formula that cannot be put into MathML is a warning of Sphinx, which `make site` takes for an error.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def _upright(found: re.Match[str]) -> str:
    plain = found[1].replace(r"\_", "_")
    return rf"\text{{{plain}}}"


UPRIGHT = (
    # Letters of names are upright in a text; as variables of their own they would be slanted.
    (re.compile(r"\\(?:operatorname|mathrm|texttt)\{([^{}]*)\}"), _upright),
    (re.compile(r"\\arg(?![a-z])"), lambda _: r"\text{arg}"),
)
LEFT_OVER = re.compile(r"\\[a-zA-Z]+")


@cache
def as_mathml(formula: str, display: str) -> str:
    """The formula as a `math` element; display: "inline" or "block". Raises ValueError for what cannot be set."""
    for sign, plain in UPRIGHT:
        formula = sign.sub(plain, formula)
    try:
        made = convert(formula, display=display)
    except Exception as error:  # latex2mathml has many, without a common base
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if found := LEFT_OVER.search(re.sub(r"<[^>]*>", "", made)):
        raise ValueError(f"it does not know {found[0]}")
    return made


def _visit(translator: Any, node: nodes.Element, display: str) -> None:
    try:
        made = as_mathml(node.astext(), display)
    except ValueError as error:
        LOGGER.warning("a formula cannot be set, %s: %s", error, node.astext(), location=node)
        made = f"<code>{translator.encode(node.astext())}</code>"
    translator.body.append(f'<div class="math-block">{made}</div>' if display == "block" else made)
    raise nodes.SkipNode


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """A formula in a line of text."""
    _visit(translator, node, "inline")


def visit_block(translator: Any, node: nodes.Element) -> None:
    """A formula in lines of its own."""
    _visit(translator, node, "block")


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
