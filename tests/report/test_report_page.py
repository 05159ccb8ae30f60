"""The page about a class: alone in its file, safe to open, and its links lead somewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from grading.__main__ import main
from grading.course import Course
from grading.report.charts import histogram_of
from grading.report.gather import gather_record
from grading.report.html import as_page, link
from grading.report.record import ClassRecord, Handin, Item, LabRecord, Mark
from grading.report.statistics import histogram, item_statistics
from tests.report.course import COMMA, FORMULA, SCRIPT, empty_course

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """The tags of a page with their attributes, its text, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="session")
def page(record: ClassRecord, course: Course) -> Page:
    return Page(as_page(record, course.root / "report.html"))


def test_the_page_is_well_formed_and_alone(page: Page) -> None:
    assert page.open == []
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in page.tags:
        assert "src" not in attributes and not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            assert tag == "a" and attributes["href"].startswith("./")


def test_no_address_outside_the_page(record: ClassRecord) -> None:
    text = as_page(record, Path("report.html"))
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text)


def test_names_and_hints_are_escaped(page: Page, record: ClassRecord) -> None:
    text = as_page(record, Path("report.html"))
    assert "<script" not in text and "<i>Warm-up" not in text
    assert SCRIPT in page.text
    assert "<script>alert(1)</script>" in page.text


def test_links_lead_to_feedback_pages(page: Page, course: Course) -> None:
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert len(links) == 6
    for address in links:
        assert (course.root / unquote(address)).is_file()


@pytest.mark.parametrize("name", ["a b", "100%", "a#b?c", "javascript:alert(1)", "Ñandú", 'x"y', "..."])
def test_a_link_survives_any_name(tmp_path: Path, name: str) -> None:
    address = link(tmp_path / "course" / name / "x.html", tmp_path / "report.html")
    assert re.fullmatch(r"\./[A-Za-z0-9%/._~-]+", address)
    assert tmp_path / unquote(address) == tmp_path / "course" / name / "x.html"


def test_what_the_instructor_reads(page: Page) -> None:
    assert "isolation: none, for 6 submissions. They ran as ordinary processes of the grading user" in page.text
    isolation = [attributes for _, attributes in page.tags if attributes.get("class") == "isolation"]
    assert len(isolation) == 1
    for part in (
        "8 students, 1 lab",
        "8 handed in, 6 graded",
        "00_warm_up: unreadable: 00_warm_up.ipynb is not a complete notebook",
        "00-open waits for a person's points",
        "2 students are left out of the chart",
        "unsupervised",
        "late: −3",
        "cell 00-warm-up is there twice",
        FORMULA,
        COMMA,
    ):
        assert part in page.text, part


def test_every_mark_has_a_sign_and_a_word(page: Page) -> None:
    for part in (
        "✓ 1 passed",
        "○ 0 blank",
        "✗ 0 failed",
        "✗ 0 failed, hidden",
        "✎ 0 to grade",
        "◐ 1.5 by hand",
    ):
        assert part in page.text, part


def test_pass_rates_and_mistakes(page: Page, record: ClassRecord) -> None:
    exercise, test, essay = item_statistics(record.labs[0])
    assert (exercise.n, exercise.full, exercise.nothing, exercise.unanswered) == (6, 2, 3, 1)
    assert (test.full, test.nothing) == (4, 2)
    assert (essay.waiting, essay.partial, essay.unanswered) == (1, 1, 4)
    hints = {mistake.hint: mistake for mistake in exercise.mistakes}
    assert sum(mistake.count for mistake in exercise.mistakes) == 3
    assert sum(mistake.n_hidden for mistake in hints.values()) == 1
    assert "33 % 2 of 6" in page.text


def test_most_frequent_first_then_by_text() -> None:
    item = Item("02-x", "02-x-check", "exercise", "X", 1.0)
    hints = ["b", "a", "c", "c"]
    handins = [Handin(hint, "02", "graded", (Mark(item, 0.0, "failed", hint),)) for hint in hints]
    (found,) = item_statistics(LabRecord("02", "X", (item,), tuple(handins)))
    assert [(mistake.hint, mistake.count) for mistake in found.mistakes] == [("c", 2), ("a", 1), ("b", 1)]


def test_the_histogram() -> None:
    counts = [each.count for each in histogram([0.0, 0.3, 0.1 + 0.2, 0.7, 0.999, 1.0, 1.2])]
    assert counts == [1, 0, 0, 2, 0, 0, 0, 1, 0, 3]
    assert histogram_of([]) is None
    chart = histogram_of([0.5, 0.5, 1.0])
    assert all(0 <= bar.y <= chart.base and bar.x + bar.width <= chart.width for bar in chart.bars)
    assert chart.median == 50


def test_the_same_class_gives_the_same_page(record: ClassRecord, course: Course) -> None:
    out = course.root / "report.html"
    assert as_page(record, out) == as_page(gather_record(course), out)


def test_the_command(course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(course.root), "--out", str(tmp_path / "r.html")]) == 0
    assert str(tmp_path / "r.html") in capsys.readouterr().out
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    (first, *_) = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert (tmp_path / unquote(first)).is_file()


@pytest.mark.slow
def test_an_empty_class(tmp_path: Path) -> None:
    course = empty_course(tmp_path / "empty")
    assert main(["report", str(course.root)]) == 0
    assert "No submissions yet" in Page((course.root / "report.html").read_text(encoding="utf-8")).text


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    item = Item("02-x", "02-x-check", "exercise", "X", 1.0)
    torn = Handin("caf\udce9", "02", "unreadable", (Mark(item, None, "unreadable"),), reason="why")
    record = ClassRecord("c", (LabRecord("02", "X", (item,), (torn,)),))
    from grading.files import write_output

    write_output(tmp_path / "r.html", as_page(record, tmp_path / "r.html"))
    assert "caf?" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_nothing_in_the_page_steers_a_terminal_or_turns_the_writing(tmp_path: Path) -> None:
    """Names, reasons, notes and hints; in attributes too. They reach a terminal by `less` and by copying."""
    odd = "a\x1b]0;x\x07\x9b2J\u202eb\u2066"
    item = Item("02-x", "02-x-check", "exercise", f"X{odd}", 1.0)
    mark = Mark(item, 0.0, "failed", hint=f"hint{odd}")
    handins = (
        Handin(f"n{odd}", "02", "unreadable", (Mark(item, None, "unreadable"),), reason=f"why{odd}"),
        Handin("ada", "02", "graded", (mark,), notes=(f"note{odd}",), outdated=f"old{odd}", feedback=tmp_path / odd),
    )
    text = as_page(ClassRecord(f"c{odd}", (LabRecord(f"02{odd}", f"L{odd}", (item,), handins),)), tmp_path / "r.html")
    assert all(char == "\n" or char.isprintable() for char in text)
    for word in ("X", "hint", "n", "why", "note", "old", "c", "02", "L"):
        assert f"{word}a?]0;x??2J?b?" in text, word
