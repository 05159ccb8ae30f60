"""The leaderboard in a real browser: read in both themes, on a phone and by keyboard; nothing of a student's runs."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from grading.board.entries import Candidate
from grading.board.gpu_times import GpuTime
from grading.board.page import as_page
from grading.board.places import Board, Place
from labkit.capstone import Entry
from tests.browser import axe
from tests.browser.contrast import too_faint
from tests.browser.pages import open_text

pytestmark = [pytest.mark.browser, pytest.mark.full("classroom")]

EVIL = "</td><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
LONG = "unbroken" * 14
PEAKS = {"parameters": 2.05, "gradients": 1.4, "optimizer": 0.6, "activations": 2.2, "temporaries": 0.4, "else": 0.3}


def row(name: str, hours: float, rank: int | None, changed: str, shared_by: int = 1) -> Place:
    peak = {category: int(size * 2**30 * (0.7 + hours / 2)) for category, size in PEAKS.items()}
    entry = Entry("basement", hours, 120, 8123.0, 40.0, peak, {"7": 1.51}, f"a5105af9a7e0f1d{rank or 0}", changed)
    when = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    return Place(name, entry, rank, shared_by, Candidate(name, "9c1e", entry, when, isolation="none"))


@pytest.fixture(scope="module")
def html() -> str:
    """A tie, ghosts in between, hostile and endless lines, GPU times, scores that were worked out again."""
    rows = (
        row("gold", 0.21, None, ""),
        row("amber-heron-7f3kq", 0.231415, 1, "no checkpoint in the last block, 4 sequences a step"),
        row("winter-warbler-0x9zt", 0.25, 2, EVIL, 2),
        row("calm-yak-22222", 0.25, 2, LONG, 2),
        row("silver", 0.3, None, ""),
        row("ivory-toad-m4m4m", 0.75, 4, ""),
    )
    board = Board("basement", "one 8 GB card in an older motherboard, four lanes of PCIe 3.0", 8 * 2**30, rows)
    until = datetime.datetime(2026, 3, 9, 22, 59, 59, tzinfo=datetime.UTC)
    times = {"a5105af9a7e0f1d1": GpuTime("NVIDIA H200", 4.2)}
    return as_page(
        board, "numerics", until, times, ("4 of 4 scores come out exactly when the scripts are played again.",)
    )


def test_nobody_is_kept_from_reading_it(shown: Page) -> None:
    assert axe.problems(shown, ("moderate", "serious", "critical")) == []
    assert too_faint(shown.locator("body")) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= shown.viewport_size["width"]
    assert shown.title() == "Leaderboard: basement" and shown.asked == []
    expect(shown.locator("tbody tr")).to_have_count(6)
    expect(shown.locator("tr.ghost")).to_have_count(2)
    places = [" ".join(told.split()) for told in shown.locator("td.place").all_inner_texts()]
    assert places == ["ghost", "1", "2 shared by 2 entries", "2 shared by 2 entries", "ghost", "4"]


def test_a_bar_is_as_long_as_its_peak(page: Page, tmp_path: Path, html: str) -> None:
    open_text(page, html, tmp_path)
    for place in page.locator("tbody tr").all():
        bar = place.locator(".bar")
        width = bar.bounding_box()["width"]
        filled = sum(part.bounding_box()["width"] for part in bar.locator("i").all())
        said = float(place.locator(".peak").inner_text().split()[0])
        assert filled / width == pytest.approx(said / 8, abs=0.02)


def test_what_is_wide_scrolls_by_keyboard(browser: Browser, tmp_path: Path, html: str) -> None:
    context = browser.new_context(viewport={"width": 760, "height": 900})
    page = context.new_page()
    open_text(page, html, tmp_path)
    last = page.locator("thead th").last
    expect(last).not_to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(page.get_by_role("region", name="places")).to_be_focused()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    expect(last).to_be_in_viewport()
    context.close()


def test_on_a_phone_nothing_has_to_be_pushed_aside(browser: Browser, tmp_path: Path, html: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 900})
    page = context.new_page()
    open_text(page, html, tmp_path)
    region = page.get_by_role("region", name="places")
    assert region.evaluate("one => one.scrollWidth <= one.clientWidth")
    expect(page.locator("tbody tr").nth(1)).to_contain_text("0.231415 virtual hours")
    context.close()


def test_the_policy_of_the_page_lets_no_script_run(page: Page, tmp_path: Path, html: str) -> None:
    torn = html.replace("<main>", "<main><script>document.title = 'ran'</script>")
    open_text(page, torn, tmp_path)
    expect(page).to_have_title("Leaderboard: basement")
    open_text(page, torn.replace("Content-Security-Policy", "No-Policy"), tmp_path)
    expect(page).to_have_title("ran")
