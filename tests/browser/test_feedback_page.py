"""A feedback page in a real browser: on a phone, in the dark, by keyboard, on paper. Nothing of a student's runs."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from labkit.check.verdict import Verdict
from tests.browser import axe
from tests.browser.contrast import texts_in, too_faint
from tests.browser.pages import open_text
from tests.feedback.page import EXERCISE, FAILED, HIDDEN, PASSED, graded_notebook, page_of, result_of

pytestmark = [pytest.mark.browser, pytest.mark.full("classroom")]

EVIL = (
    "</code></pre></div></style><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\"> "
    "<details open ontoggle=\"document.title='ran'\">[x](javascript:document.title='ran') "
    "![y](http://127.0.0.1:9/y.png) $\\href{javascript:document.title='ran'}{x}$ $\\hspace{-90em}\\text{all points}$"
)
LONG = "a_name_that_no_phone_is_wide_enough_for = " + " + ".join(f"term_{n}" for n in range(40))
BLANK = Verdict(EXERCISE, "unanswered", 0.0, f"{EXERCISE}: not answered yet.", n_cases=8)
EVIL_FAILED = Verdict(EXERCISE, "failed", 0.0, EVIL, (("got", EVIL + LONG),), EVIL, n_cases=8)
NAMES = ("good", "middling", "hidden", "blank", "hostile")


@functools.cache
def text_of(name: str) -> str:
    """The page of one of five students."""
    if name == "good":
        notebook = graded_notebook(LONG, "Because $\\sum_i x_i^2$.", scores=(1.0, 2.0, 2.0), by_hand=True)
        return page_of(notebook, result_of(), score=5.0)
    if name == "middling":
        notebook = graded_notebook("def rms(x, dim):\n    return x  # not yet", comment="Look **here**.", waiting=True)
        return page_of(notebook, result_of(FAILED, error="AssertionError: rms"), late=1.0)
    if name == "hidden":
        notebook = graded_notebook("def rms(x): return x", scores=(0.0, 2.0, 1.0))
        return page_of(notebook, result_of(PASSED, HIDDEN))
    if name == "blank":
        notebook = graded_notebook(scores=(0.0, 0.0, 0.0), comment="No response.")
        return page_of(notebook, result_of(BLANK, error="NameError"))
    notebook = graded_notebook(EVIL + LONG, EVIL, EVIL * 30, EVIL, EVIL)
    return page_of(notebook, result_of(EVIL_FAILED, error=EVIL), student=EVIL)


@pytest.fixture(params=NAMES)
def html(request: pytest.FixtureRequest) -> str:
    return text_of(request.param)


def test_nobody_is_kept_from_reading_it(shown: Page) -> None:
    assert axe.problems(shown, ("moderate", "serious", "critical")) == []
    assert len(texts_in(shown.locator("body"))) > 20
    assert too_faint(shown.locator("body")) == []
    width = shown.evaluate("document.documentElement.scrollWidth")
    assert width <= shown.viewport_size["width"], "the page scrolls sideways"
    assert shown.title() != "ran" and shown.asked == []


def test_the_colours_follow_the_reader(browser: Browser, tmp_path: Path) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        open_text(page, text_of("middling"), tmp_path)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert grounds == ["rgb(255, 255, 255)", "rgb(20, 24, 29)"]


def test_by_keyboard_alone(page: Page, tmp_path: Path) -> None:
    open_text(page, text_of("middling"), tmp_path)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to your notebook")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to your notebook")).to_be_in_viewport()
    hint = page.locator("summary", has_text="Hint 1")
    course = page.locator("summary", has_text="Course: Lab 00")
    for wanted in (course, hint):
        for _ in range(60):
            if wanted.evaluate("one => one === document.activeElement"):
                break
            page.keyboard.press("Tab")
        expect(wanted).to_be_focused()
        assert wanted.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        assert wanted.evaluate("one => one.parentElement.open")
    expect(page.get_by_text("Add.", exact=True)).to_be_visible()


def test_a_line_of_the_table_leads_to_what_is_said_of_it(page: Page, tmp_path: Path) -> None:
    open_text(page, text_of("middling"), tmp_path)
    page.locator(".reached a").first.click()
    expect(page.locator("#about-00-warm-up-check")).to_be_in_viewport()
    page.get_by_role("link", name=f"Your answer to {EXERCISE}").click()
    expect(page.locator(".own", has_text="not yet")).to_be_in_viewport()


def test_on_paper_it_is_light_and_without_the_courses_text(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    open_text(page, text_of("middling"), tmp_path)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(page.locator("details.course").first).to_be_hidden()
    expect(page.get_by_role("link", name="Skip to your notebook")).to_be_hidden()
    expect(page.locator(".card").first).to_be_visible()
    assert too_faint(page.locator("main")) == []
    context.close()


def test_a_script_that_came_into_the_page_all_the_same_would_not_run(page: Page, tmp_path: Path) -> None:
    """The page's own policy, tried with a page that escapes nothing; and, as a control, without the policy."""
    script = "<script>document.title = 'ran'</script><img src='http://127.0.0.1:9/x' onerror='document.title = 1'>"
    torn = text_of("good").replace("<main>", f"<main>{script}")
    for text, title, n_asked in ((torn, "Feedback: Lab 00: A small lab", 0), (torn.replace("Policy", "No"), "1", 1)):
        open_text(page, text, tmp_path)
        page.wait_for_load_state("load")
        expect(page).to_have_title(title)
        assert len(page.asked) == n_asked
        page.context.unroute_all()
