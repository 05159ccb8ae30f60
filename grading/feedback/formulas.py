"""Formulas in LaTeX as MathML, which browsers set by themselves: no script, no network, no fonts of ours.

Only elements and attributes of a list go through. A formula with anything else, such as a link, a colour or what hides
a part of it, is shown as it was written.
"""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup

ELEMENTS = frozenset(
    (
        *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mstyle", "mpadded", "mfrac", "msqrt", "mroot"),
        *("msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mtable", "mtr", "mtd"),
        "menclose",
    )
)
SIZES = frozenset(("width", "lspace", "rspace", "minsize", "maxsize", "rowspacing", "columnspacing"))
ATTRIBUTES = SIZES | frozenset(
    (
        *("display", "mathvariant", "stretchy", "fence", "separator", "form", "accent", "accentunder"),
        *("linethickness", "scriptlevel", "displaystyle", "columnalign", "notation", "movablelimits"),
    )
)
MOST = 2_000
"""Characters of a formula that are set; a longer one is shown as it was written."""

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_SIZE = re.compile(r"\+?\d{0,2}(\.\d{1,3})?(em|ex)|[a-z]+mathspace|0")


def as_mathml(source: str, display: bool = False) -> Markup:
    """The formula between two dollar signs; display: it stands on a line of its own."""
    try:
        if len(source) > MOST:
            raise ValueError("too long")
        root = ElementTree.fromstring(convert(source, display="block" if display else "inline"))
        text = _written(root)
    except Exception:
        # The converter raises errors of many kinds on what is no formula.
        text = f"<code>{escape('$$' if display else '$')}{escape(source)}{'$$' if display else '$'}</code>"
    return Markup(text)


def _written(element: ElementTree.Element) -> str:
    """Written by us, so that nothing but names from the lists and escaped text is in it. Raises ValueError."""
    name = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
    if name not in ELEMENTS:
        raise ValueError(f"<{name}>")
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in element.items() if _is_allowed(key, value))
    inside = escape(element.text or "") + "".join(_written(child) + escape(child.tail or "") for child in element)
    return f"<{name}{attributes}>{inside}</{name}>"


def _is_allowed(key: str, value: str) -> bool:
    """Nothing of a negative or a huge width: it would be drawn over other text."""
    return key in ATTRIBUTES and (key not in SIZES or _SIZE.fullmatch(value) is not None)
