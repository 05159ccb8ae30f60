"""The pages as files: what is on them, where their links lead, and that no answer is among them."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlparse

import pytest
import torch

from grading.build import build
from grading.site.answers import BLANKS, answers_of
from labkit.exercises import everything
from labkit.labs import LABS as DECLARED
from labkit.labs import in_hours
from tests.exercises.harness import answers_in, solution_of
from tests.site.pages import LABS, MOST_S, ROOT, read_all, site, texts, words

pytestmark = [pytest.mark.full("classroom"), pytest.mark.timeout(MOST_S)]
LOADED = ("img", "script", "iframe", "source", "video", "audio")


def test_every_link_leads_somewhere() -> None:
    """To a file of the site and, behind #, to a place in it. Links to other sites are not followed."""
    lost = []
    for path, page in read_all().items():
        for _, address in page.links:
            parts = urlparse(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.is_file():
                lost.append(f"{path.name}: {address}")
            elif place and target.suffix == ".html" and place not in read_all()[target].ids:
                lost.append(f"{path.name}: {address} has no such place")
    assert len(read_all()) > len(LABS) and lost == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    """No page, style or script asks another site for anything when it is read."""
    loads = []
    for path, page in read_all().items():
        loads += [f"{path.name}: {to}" for tag, to in page.links if tag in LOADED and urlparse(to).netloc]
        styles = re.findall(r"<link[^>]*>", path.read_text(encoding="utf-8"))
        loads += [f"{path.name}: {one}" for one in styles if re.search(r'href="(https?:)?//', one)]
    for style in site().rglob("*.css"):
        loads += [
            f"{style.name}: {to}"
            for to in re.findall(r"(?:url\(|@import )['\"]?((?:https?:)?//[^'\")]*)", style.read_text(encoding="utf-8"))
        ]
    assert loads == []


def test_no_line_of_a_solution_is_on_a_page() -> None:
    """Nor in the index of the search. What the student's notebook shows as well, in a hint say, is no secret."""
    pages, found, n_lines = list(texts()), [], 0
    labs = [build(source) for source in sorted((ROOT / "solutions").glob("[0-9][0-9]_*.py"))]
    # What one lab asks for, a later one may give.
    given = words_of(cell.source for lab in labs for cell in lab.student.cells)
    for built in labs:
        lines = {line for line in answers_of(built.solution, built.student).lines if line not in given}
        n_lines += len(lines)
        found += [f"{path.name}: {line}" for path, text in pages for line in lines if line in text]
    assert n_lines > 1000 and found == []


def test_no_line_of_a_hidden_case_is_on_a_page() -> None:
    rows = [
        BLANKS.sub("", row)
        for path in (ROOT / "grading" / "hidden").rglob("lab*/*.py")
        for row in path.read_text(encoding="utf-8").splitlines()
    ]
    drawn = {row for row in rows if "rng." in row}
    assert len(drawn) > 100
    assert [f"{path.name}: {row}" for path, text in texts() for row in drawn if row in text] == []


def test_no_value_that_is_an_answer_is_on_a_page() -> None:
    """Numbers and words that a solution gives whatever it is asked: its cells are run for them."""
    secrets = {}
    for source in sorted((ROOT / "solutions").glob("[0-9][0-9]_*.py")):
        built = build(source)
        public = words_of(cell.source for cell in built.student.cells)
        for name in sorted(answers_of(built.solution, built.student).values):
            value = value_of(source.stem[:2], name)
            shown = [text for text in fingerprints(value) if text not in public]
            if shown:
                secrets[source.stem, name] = shown
    assert ("08_lora", "nf4_codebook") in secrets, "the check knows a value"
    pages = dict(texts())
    found = [
        f"{lab}.html: {name}: {text}"
        for (lab, name), shown in secrets.items()
        for text in shown
        if text in pages[site() / "labs" / f"{lab}.html"]
    ]
    assert found == []


def words_of(texts_) -> str:
    return BLANKS.sub("", "\n".join(texts_))


def value_of(lab: str, name: str) -> object:
    """What the name stands for in a solved notebook; what a function without arguments returns."""
    for exercise in everything().values():
        if exercise.id.startswith(lab) and re.search(rf"^(def )?{name}\b", solution_of(exercise.id), re.MULTILINE):
            value = answers_in(exercise.id, solution_of(exercise.id))[name]
            return value() if callable(value) else value
    raise AssertionError(f"no solution of lab {lab} defines {name}")


def fingerprints(value: object) -> list[str]:
    """Texts that tell a value: its numbers to four places, its longer words."""
    if isinstance(value, torch.Tensor):
        return fingerprints(value.flatten().tolist())
    if isinstance(value, dict):
        return [text for pair in value.items() for text in fingerprints(list(pair))]
    if isinstance(value, list | tuple | set):
        return [text for one in value for text in fingerprints(one)]
    if isinstance(value, float) and abs(value) not in (0.0, 0.5, 1.0):
        return [f"{abs(value):.4f}"]
    return [BLANKS.sub("", value)] if isinstance(value, str) and len(value) >= 8 else []


def test_no_marker_and_no_path_of_this_machine_is_on_a_page() -> None:
    """Only the page for authors of labs has markers: those that it teaches."""
    taught = BLANKS.sub("", (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8"))
    for path, text in texts():
        for mark in ("BEGINSOLUTION", "BEGINHIDDEN", "BEGINMARK", str(ROOT), "/tmp/tmp"):
            assert text.count(mark) == (taught.count(mark) if path.stem == "authoring" else 0), (path, mark)


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_s_page_shows_the_students_notebook_with_outputs(lab: str) -> None:
    path = site() / "labs" / f"{lab}.html"
    page, text = read_all()[path], words(path)
    student = build(ROOT / "solutions" / f"{lab}.py").student
    stubs = sum("NotImplementedError" in cell.source or "#error" in cell.source for cell in student.cells)
    assert stubs and text.count("Writeyouranswerhere") >= stubs
    for cell in student.cells:
        if cell.cell_type == "code":
            assert BLANKS.sub("", cell.source) in text, cell.id
    folded = sum(cell.source.count("<details>") for cell in student.cells)
    assert page.tags.count("details") >= folded >= 3
    assert any("_static/figures/" in address for _, address in page.links), "figures of the solved run"
    assert "casespass" in text, "what its checks say"
    if any("$$" in cell.source for cell in student.cells):
        assert "math" in page.tags


def test_the_front_page_has_the_labs_in_order_with_minutes_and_prerequisites() -> None:
    text = words(site() / "index.html")
    at = 0
    for lab in (one for one in DECLARED if one.stands):
        title = BLANKS.sub("", f"{lab.id} {lab.title}").replace("'", "’")
        at = text.index(title, at)
        told = text[at : text.find("exercise", at) + 200]
        assert BLANKS.sub("", in_hours(lab.minutes)) in told
        assert all(need in told for need in lab.needs)
        assert "?" in told, "the question that the lab opens with"
        optional = sum(one.optional for one in everything().values() if one.id.startswith(lab.id))
        assert (f"and{optional}optional·" in told) == bool(optional), "the README's table counts them, too"


def test_the_table_has_every_exercise_with_its_minutes() -> None:
    rows = re.findall(r"<tr class=\"row-(?:odd|even)\">(.*?)</tr>", (site() / "exercises.html").read_text(), re.DOTALL)
    cells = [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)] for row in rows
    ]
    minutes = {row[0]: row[-1] for row in cells if row}
    assert minutes == {one.id: str(one.minutes) for one in everything().values()}


def test_instructors_find_their_pages() -> None:
    names = {path.stem for path in (ROOT / "docs").glob("*.md")} | {"grading", "index"}
    assert {path.stem for path in (site() / "instructors").glob("*.html")} == names - {"students"}


def test_students_find_theirs_from_the_front_page() -> None:
    assert ("a", "students.html") in read_all()[site() / "index.html"].links
    assert BLANKS.sub("", ".venv/bin/python -m labkit.env") in words(site() / "students.html")


def test_the_pages_are_not_made_twice_of_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    import grading.site.make as module

    monkeypatch.setattr(module, "run_sphinx", lambda *_: pytest.fail("the pages are made anew"))
    before = (site() / "index.html").stat().st_mtime_ns
    module.make_site(module.Wish(), lambda _: None)
    assert (site() / "index.html").stat().st_mtime_ns == before
