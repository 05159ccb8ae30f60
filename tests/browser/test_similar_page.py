"""The page of answers that are alike, in a real browser: both themes, a phone, texts that would be markup."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from grading.similar.detector import Likeness
from grading.similar.honest import Honest
from grading.similar.page import as_page
from grading.similar.pairs import Compared, Group, Pair
from grading.similar.programs import ClassAnswers, Program
from tests.browser import axe
from tests.browser.contrast import too_faint

pytestmark = [pytest.mark.browser, pytest.mark.full("classroom")]

EVIL = "<script>document.title='ran'</script>"
LINE = "    total = sum(one_rather_long_name * another_rather_long_name for one_rather_long_name in everything)\n"
TEXT = f"def decode(bits, fmt):\n    '''{EVIL}'''\n{LINE * 5}    return total\n"


@pytest.fixture
def html() -> str:
    program, honest = Program(TEXT), Honest(0.31, 15, None)
    pair = Pair(("ada", EVIL), (program, program), Likeness(0.93, (((23, 160),), ((23, 160),))), (0, 2))
    group = Group(("cleo", "dan", "eve"), (program, program))
    left_out = Compared("02-blocked-sum", Honest(0.84, 3, "right answers are necessarily alike"))
    compared = [Compared("02-decode", honest, (group,), (pair,), 6, ("zoe",)), Compared("02-sums", honest), left_out]
    return as_page(ClassAnswers("02_float_formats", [], {EVIL: "it is no notebook"}), compared)


def test_nobody_is_kept_from_reading_it(shown: Page) -> None:
    assert axe.problems(shown, ("moderate", "serious", "critical")) == []
    assert too_faint(shown.locator("main")) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= shown.viewport_size["width"]
    assert shown.title() == "Similar answers: 02_float_formats" and shown.asked == []
    assert EVIL in shown.locator("pre").first.inner_text()


def test_the_page_is_dark_where_the_reader_s_system_is(shown: Page) -> None:
    is_dark = shown.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 24, 29)" if is_dark else "rgb(255, 255, 255)")


def test_the_two_stand_side_by_side_where_there_is_room(shown: Page) -> None:
    one, other = (shown.locator(".sides").first.locator("> div").nth(n).bounding_box() for n in (0, 1))
    if shown.viewport_size["width"] > 700:
        assert one["y"] == other["y"] and one["x"] + one["width"] <= other["x"]
    else:
        assert one["x"] == other["x"] and one["y"] + one["height"] <= other["y"]
        assert one["width"] > 300
