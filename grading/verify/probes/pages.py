"""Is there anything active of a submission's in what people open: feedback pages, the report, the CSV file?

A page is parsed, and an element that carries the attack's token may do nothing by itself and nothing at a click.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup

ACTIVE = ("script", "iframe", "object", "embed", "svg", "form", "link", "meta", "base", "style", "math")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?")


def active_in(page: Path, token: str) -> Iterator[str]:
    """One text for each element that carries the token and could run, load or navigate by itself."""
    soup = BeautifulSoup(page.read_text(errors="replace"), "html.parser")
    for element in soup.find_all(True):
        attributes = {name: str(value) for name, value in element.attrs.items()}
        if not any(token in value for value in attributes.values()) and not (
            element.name in ACTIVE and token in element.get_text()
        ):
            continue
        for name, value in attributes.items():
            if name.startswith("on") or re.match(r"\s*(javascript|vbscript|data:text/html)", value, re.IGNORECASE):
                yield f"{page.name}: <{element.name} {name}> would run"
        if element.name in ACTIVE or "src" in attributes or "srcdoc" in attributes:
            yield f"{page.name}: an element <{element.name}> of the submission's own"


def formulas_in(table: Path) -> Iterator[str]:
    """One text for each cell of a CSV file that a spreadsheet would run."""
    with table.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            for cell in row:
                if cell.startswith(FORMULA_STARTS) and not _NUMBER.fullmatch(cell):
                    yield f"{table.name}: a formula {cell[:40]!r}"


def escapes_in(text: str) -> bool:
    """Whether a text would steer a terminal, or turn the direction of writing."""
    return bool(CONTROL.search(text))
