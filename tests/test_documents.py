"""Links of the documents lead to files, pictures and headings that are there; every page can be found from the README.

Links to other sites are not followed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *DOCS,
    ROOT / "grading" / "README.md",
    ROOT / "tests" / "attacks" / "README.md",
]
LINK = re.compile(r"(?P<is_picture>!?)\[(?P<said>[^\]]*)\]\((?P<to>[^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LARGEST_PICTURE_BYTES = 200 * 1024


def links(path: Path) -> list[re.Match[str]]:
    """Those to files of this project and to places in them."""
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    return [one for one in LINK.finditer(text) if "://" not in one["to"]]


def places(path: Path) -> set[str]:
    """The names by which the headings of a document are linked to."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    lost = []
    for found in links(document):
        name, _, place = found["to"].partition("#")
        target = (document.parent / name).resolve() if name else document
        if not target.exists():
            lost.append(f"{found['to']}: there is no such file")
        elif place and place not in places(target):
            lost.append(f"{found['to']}: there is no such heading")
    assert lost == []


def test_every_page_of_docs_is_linked_from_the_readme() -> None:
    linked = {(ROOT / found["to"].partition("#")[0]).resolve() for found in links(ROOT / "README.md")}
    assert [path.name for path in DOCS if path not in linked] == []


def test_pictures_say_what_they_show_and_are_small() -> None:
    shown = [found for found in links(ROOT / "README.md") if found["is_picture"]]
    assert {(ROOT / found["to"]).name for found in shown} == {path.name for path in (ROOT / "docs/images").iterdir()}
    for found in shown:
        path = ROOT / found["to"]
        assert len(found["said"].split()) >= 8, f"{path.name}: a person who does not see it wants to know what it shows"
        assert path.stat().st_size <= LARGEST_PICTURE_BYTES, path.name
        with Image.open(path) as picture:
            assert picture.width >= 1000, f"{path.name} is too narrow to be read when it is opened"
