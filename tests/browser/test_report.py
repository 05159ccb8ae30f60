"""The class report in a real browser: read in both themes and on a phone, sorted by mouse and by keyboard."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from grading.report.html import as_page
from grading.report.record import ClassRecord, Handin, Item, LabRecord, Mark
from tests.browser import axe
from tests.browser.contrast import too_faint
from tests.browser.pages import open_text, shoot

pytestmark = [pytest.mark.browser, pytest.mark.full("classroom")]

EVIL = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
N_EXERCISES = 9
SCORES = (10.0, 9.0, 100.0)


@functools.cache
def record() -> ClassRecord:
    """Two labs, one wide; every outcome, hints, a late hand-in, and names that would be markup."""
    outcomes = ("passed", "failed", "partial", "unanswered", "limit", "suspected", "needs grading", "by hand", "failed")
    items = tuple(
        Item(f"02-exercise-{n}", f"02-exercise-{n}-check", "exercise", f"Exercise {n}", 2.0) for n in range(N_EXERCISES)
    )
    students = ("ada", "Bob", EVIL, "zoe", "李雷")
    wide = []
    for place, student in enumerate(students):
        turned = outcomes[place:] + outcomes[:place]
        marks = tuple(
            Mark(
                item, {"passed": 2.0, "partial": 1.0}.get(each, 0.0), each, f"Hint of {EVIL}" if "ed" in each else None
            )
            for item, each in zip(items, turned, strict=True)
        )
        wide.append(Handin(student, "02", "graded", marks, penalty=0.5, notes=(EVIL,), isolation="none"))
    blank = tuple(Mark(item, None, "unreadable") for item in items)
    wide.append(Handin("torn", "02", "unreadable", blank, reason=EVIL))
    one = Item("01-x", "01-x-check", "exercise", "X", 100.0)
    scores = dict(zip(students, (*SCORES, 0.0, 0.0), strict=True))
    narrow = [Handin(name, "01", "graded", (Mark(one, score, "partial"),)) for name, score in scores.items()]
    narrow.append(Handin("torn", "01", "not handed in", (Mark(one, 0.0, "not handed in"),)))
    labs = (LabRecord("01", "Lab 01", (one,), tuple(narrow)), LabRecord("02", "Lab 02", items, tuple(wide)))
    return ClassRecord("numerics", labs, sections={"ada": "A", "Bob": "B", "zoe": "B"})


@pytest.fixture
def html() -> str:
    return text_of(record())


def text_of(found: ClassRecord) -> str:
    return as_page(found, Path("report.html"))


def test_nobody_is_kept_from_reading_it(shown: Page) -> None:
    assert axe.problems(shown, ("moderate", "serious", "critical")) == []
    assert too_faint(shown.locator("main")) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= shown.viewport_size["width"]
    assert shown.title() == "Class report: numerics" and shown.asked == []


def column(table: Locator, n: int) -> list[str]:
    return [text.split()[0] for text in table.locator(f"tbody tr > *:nth-child({n + 1})").all_inner_texts()]


def test_a_click_sorts_by_number_and_a_second_one_the_other_way_round(page: Page, tmp_path: Path, html: str) -> None:
    open_text(page, html, tmp_path)
    table = page.locator("table.map")
    head = table.locator("thead th").nth(2)
    expect(head).not_to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    # 100 stands after 9 and 10; who has no points comes last either way.
    assert column(table, 2) == ["0", "0", "9", "10", "100", "not"]
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert column(table, 2) == ["100", "10", "9", "0", "0", "not"]
    expect(table.locator("thead th[aria-sort]")).to_have_count(1)


def test_by_keyboard_and_by_name(page: Page, tmp_path: Path, html: str) -> None:
    open_text(page, html, tmp_path)
    table = page.locator("table.map")
    head = table.locator("thead th").first
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the labs")).to_be_focused()
    button = head.get_by_role("button")
    for _ in range(40):
        if button.evaluate("one => one === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    names = table.locator("tbody th").all_inner_texts()
    assert [name for name in names if name.isascii() and name.isalpha()] == ["ada", "Bob", "torn", "zoe"]
    page.keyboard.press("Space")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert table.locator("tbody th").all_inner_texts() == names[::-1]


def test_every_table_sorts_and_loses_no_row(page: Page, tmp_path: Path, html: str) -> None:
    open_text(page, html, tmp_path)
    tables = page.locator("table")
    assert tables.count() >= 6
    for table in tables.all():
        before = sorted(table.locator("tbody tr").all_inner_texts())
        for button in table.locator("thead button").all():
            button.click()
        assert sorted(table.locator("tbody tr").all_inner_texts()) == before


def test_a_hint_opens_by_keyboard(page: Page, tmp_path: Path, html: str) -> None:
    open_text(page, html, tmp_path)
    summary = page.locator(".outcomes summary").first
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".outcomes details[open] p")).to_contain_text("Hint of <script>")


def test_without_the_policy_of_the_page_a_script_in_it_would_run(page: Page, tmp_path: Path, html: str) -> None:
    """The policy lets our own script run and no other: tried with a page that escapes nothing."""
    torn = html.replace("<main>", "<main><script>document.title = 'ran'</script>")
    open_text(page, torn, tmp_path)
    expect(page).to_have_title("Class report: numerics")
    expect(page.locator("thead button").first).to_be_visible()
    open_text(page, torn.replace("Content-Security-Policy", "No-Policy"), tmp_path)
    expect(page).to_have_title("ran")


def of_many(n: int) -> ClassRecord:
    """Lab 02 of `record`, handed in by so many."""
    lab = record().labs[1]
    handins = tuple(replace(lab.handins[k % 5], student=f"student {k:03}") for k in range(n))
    return ClassRecord("numerics", (replace(lab, handins=handins),))


@pytest.mark.parametrize("width", [1280, 360])
def test_the_headings_of_a_large_class_stay_in_sight(page: Page, tmp_path: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    open_text(page, text_of(of_many(60)), tmp_path)
    place = page.get_by_role("group", name="outcomes of 02")
    place.evaluate("one => { one.scrollTop = 900; one.scrollLeft = 60; }")
    box, head, name = (
        found.bounding_box() for found in (place, place.locator("thead th").first, place.locator("tbody th").first)
    )
    assert head["x"] == name["x"] == box["x"]
    if width == 1280:
        assert box["height"] < 800 and name["y"] < box["y"] == head["y"]
    else:
        assert box["height"] > 2000, "on a phone the page alone scrolls downwards"
    page.emulate_media(media="print")
    assert place.evaluate("one => one.scrollHeight - one.clientHeight") == 0


def test_a_window_that_is_wider_than_the_text_shows_more_columns(page: Page, tmp_path: Path, html: str) -> None:
    page.set_viewport_size({"width": 1700, "height": 800})
    open_text(page, html, tmp_path)
    place = page.get_by_role("group", name="outcomes of 02").bounding_box()
    text = page.locator("main").bounding_box()
    assert place["x"] == text["x"] and place["x"] + place["width"] > text["x"] + text["width"] + 150
    assert page.evaluate("document.documentElement.scrollWidth") == 1700


def test_a_lab_of_many_exercises_fits_a_sheet_of_paper(page: Page, tmp_path: Path) -> None:
    """A4 across, less its margins: 273 mm are 1,031 pixels of a browser."""
    lab = of_many(3).labs[0]
    items = tuple(replace(item, id=f"{item.id}-{half}") for half in "ab" for item in lab.items)[:16]
    handins = tuple(
        replace(one, marks=tuple(replace(one.marks[n % N_EXERCISES], item=item) for n, item in enumerate(items)))
        for one in lab.handins
    )
    record = ClassRecord("numerics", (replace(lab, items=items, handins=handins),), sections={"student 001": "A"})
    page.set_viewport_size({"width": 1031, "height": 728})
    page.emulate_media(media="print")
    open_text(page, text_of(record), tmp_path)
    shoot(page.locator(".outcomes"), "report-paper")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1031
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"
    assert page.locator(".outcomes th, .outcomes td").evaluate_all(cut) == []
