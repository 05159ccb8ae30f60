"""The pages that `make site` makes, made once for all tests, and what a test reads of a page."""

from __future__ import annotations

import fcntl
import functools
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from grading.site.answers import BLANKS
from grading.site.make import OUT, ROOT, Wish, make_site
from tests.lanes import require_package

LABS = tuple(path.stem for path in sorted((ROOT / "solutions").glob("[0-9][0-9]_*.py")))
OTHERS = ("index", "students", "exercises", "api", "search", "labs/index", "instructors/index", "instructors/map")
NAMES = (*OTHERS, *(f"labs/{lab}" for lab in LABS))
"""Pages that are looked at one by one; all of them are looked through for links and answers."""

MOST_S = 3600
"""For a test that may be the first: it runs every solved notebook that has not been kept."""


@functools.cache
def site() -> Path:
    """The folder of the pages, as the sources make them now. Processes of pytest-xdist share it."""
    require_package("sphinx")
    OUT.parent.mkdir(exist_ok=True)
    with OUT.with_name("site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_site(Wish(), print)
    return OUT


@dataclass
class Read(HTMLParser):
    """What stands on a page.

    links: (tag, address) of everything that a page points to or loads. ids: the places in it. tags: every tag.
    """

    path: Path
    links: list[tuple[str, str]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    tags: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append((tag, value))
            elif name in ("id", "name") and value:
                self.ids.add(value)


@functools.cache
def read_all() -> dict[Path, Read]:
    """Every page, by its path."""
    return {path: Read(path) for path in sorted(site().rglob("*.html")) if "_static" not in path.parts}


def words(path: Path) -> str:
    """All texts of a file, without tags and blanks: what is highlighted is in pieces, and lines break anywhere."""
    plain = re.sub(r"<[^>]*>", "", path.read_text(encoding="utf-8")) if path.suffix == ".html" else path.read_text()
    return BLANKS.sub("", html.unescape(plain))


def texts() -> Iterator[tuple[Path, str]]:
    """`words` of every file of the site that holds text of ours."""
    for path in sorted(site().rglob("*")):
        if path.suffix == ".html" or path.name == "searchindex.js":
            yield path, words(path)
