"""The page about a class: alone in its file, safe to open, and its links lead somewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from grading.__main__ import main
from grading.course import Course
from grading.report import html
from grading.report.charts import histogram_of
from grading.report.gather import gather_record
from grading.report.html import as_page, link, shade
from grading.report.record import ClassRecord, Handin, Item, LabRecord, Mark
from grading.report.sections import SectionFigures, section_table
from grading.report.statistics import class_mistakes, histogram, item_statistics
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
        if self.open[-1:] not in (["style"], ["script"]):
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
    assert not names & {"link", "img", "iframe", "object", "embed", "base", "form"}
    assert [tag for tag, _ in page.tags].count("script") == 1
    ids = {attributes.get("id") for _, attributes in page.tags}
    for tag, attributes in page.tags:
        assert "src" not in attributes and not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            address = attributes["href"]
            assert tag == "a" and (address.startswith("./") or address[1:] in ids)


def test_no_address_outside_the_page(record: ClassRecord) -> None:
    text = as_page(record, Path("report.html"))
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text)


def test_names_and_hints_are_escaped(page: Page, record: ClassRecord) -> None:
    text = as_page(record, Path("report.html"))
    assert "<i>Warm-up" not in text
    # Ours alone, as it stands in the repository.
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script == (Path(html.__file__).parent / "sort.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    assert f"{policy}script-src 'sha256-{digest}'" in unescape(text)
    assert SCRIPT in page.text
    assert "<script>alert(1)</script>" in page.text


def test_links_lead_to_feedback_pages(page: Page, course: Course) -> None:
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a" and attributes["href"][0] == "."]
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
    (first, *_) = [link for tag, each in page.tags if tag == "a" and (link := each["href"]).startswith("./")]
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


def small_class(*outcomes: str, lab: str = "02", hint: str = "why") -> LabRecord:
    """A lab of one exercise with a point, one student an outcome: a passed one has it, the others have none."""
    item = Item(f"{lab}-x", f"{lab}-x-check", "exercise", "X", 1.0)
    marks = [Mark(item, float(each == "passed"), each, hint if each == "failed" else None) for each in outcomes]
    handins = [Handin(f"s{n}", lab, "graded", (mark,)) for n, mark in enumerate(marks)]
    return LabRecord(lab, f"Lab {lab}", (item,), tuple(handins))


@pytest.mark.parametrize(
    ("outcomes", "warns"),
    [
        (("failed", "failed", "passed"), True),
        (("failed", "passed", "passed"), False),
        (("failed", "failed"), False),  # of two nobody can say
        (("failed", "unanswered", "unanswered", "passed", "failed", "passed"), True),  # of those who tried, half
        (("unanswered",) * 5, False),
    ],
)
def test_a_warning_where_an_exercise_fails_for_many_of_those_who_tried(outcomes: tuple[str, ...], warns: bool) -> None:
    (found,) = item_statistics(small_class(*outcomes))
    assert found.fails_for_many is warns
    text = Page(as_page(ClassRecord("c", (small_class(*outcomes),)), Path("r.html"))).text
    assert ("students who tried it" in text) is warns and ("who tried it have no points" in text) is warns


def test_the_warning_says_what_fraction_and_the_mistake() -> None:
    record = ClassRecord("c", (small_class("failed", "failed", "failed", "passed", "unanswered"),))
    text = Page(as_page(record, Path("r.html"))).text
    assert "3 of the 4 students who tried it (75 %) have no points for it; most often: why (3 ×)" in text


def test_the_mistakes_of_all_labs_the_most_frequent_first() -> None:
    one, two = small_class("failed", lab="01", hint="rare"), small_class("failed", "failed", lab="02", hint="often")
    assert [(item.id, each.hint, each.count) for item, each in class_mistakes([one, two])] == [
        ("02-x", "often", 2),
        ("01-x", "rare", 1),
    ]


def test_every_table_can_be_sorted_and_has_headings_of_columns(page: Page) -> None:
    tables = [attributes["class"].split() for tag, attributes in page.tags if tag == "table"]
    assert tables and all("sortable" in classes for classes in tables)
    heads = [attributes for tag, attributes in page.tags if tag == "th"]
    assert {attributes.get("scope") for attributes in heads} == {"col", "row"}


def test_the_labs_are_a_click_away(page: Page) -> None:
    assert {"#lab-0", "#key"} <= {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert ("nav", {"aria-label": "parts of the report"}) in page.tags


def test_the_map_of_the_class_has_its_shares_in_words_too() -> None:
    assert [shade(share) for share in (-0.1, 0.0, 0.19, 0.2, 0.99, 1.0, 1.2)] == [
        *("heat-0", "heat-0", "heat-0", "heat-1", "heat-4", "heat-5", "heat-5")
    ]
    labs = (small_class("passed", "failed", lab="01"), small_class("passed", "unanswered", lab="02"))
    text = as_page(ClassRecord("c", labs), Path("r.html"))
    assert '<td class="number heat-5" data-sort="1.0">1</td>' in text
    assert '<td class="number heat-0" data-sort="0.0">0</td>' in text


def test_sections_stand_side_by_side() -> None:
    labs = (small_class("passed", "failed", "passed", "passed"),)
    record = ClassRecord("c", labs, sections={"s0": "<b>B", "s1": "A", "s2": "A", "elsewhere": "C"})
    table = section_table(record)
    assert table.names == ("<b>B", "A")
    ((_, figures),) = table.rows
    assert figures == (SectionFigures(1, 1, 1, 1.0), SectionFigures(2, 2, 2, 0.5))
    text = Page(as_page(record, Path("r.html"))).text
    assert "Sections" in text and "<b>B" in text and "50 %" in text
    for sections in ({"s0": "A", "s1": "A"}, {}):
        alone = ClassRecord("c", labs, sections=sections)
        assert section_table(alone) is None and "Sections" not in Page(as_page(alone, Path("r.html"))).text
