"""What a student reads on the page: what was reached, what is missing and why, and nothing hidden or active."""

from __future__ import annotations

import itertools
import re
from copy import deepcopy
from dataclasses import replace
from html import unescape

import pytest
from nbformat.v4 import new_markdown_cell

from grading.feedback.exporter import as_page
from grading.feedback.reading import content_of
from labkit.check.verdict import Verdict
from tests.feedback.page import EXERCISE, FAILED, HIDDEN, NAMES, PASSED, Read, graded_notebook, page_of, result_of

EVIL = (
    "</code></pre></div><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    "<style>*{display:none}</style> [x](javascript:alert(4)) ![y](https://example.org/y.png) "
    "<a href='data:text/html,x'>z</a> $\\href{javascript:alert(5)}{x}$ **bold**\n\n# Big\n\n<details ontoggle=alert(6)>"
)


def read(**parts: object) -> Read:
    notebook = {name: parts.pop(name) for name in list(parts) if name not in ("result", "late", "student", "score")}
    result = parts.pop("result", result_of())
    page = Read(page_of(graded_notebook(**notebook), result, **parts))
    assert page.open == []
    return page


def ordered(text: str, *parts: str) -> None:
    places = [text.find(part) for part in parts]
    assert -1 not in places and places == sorted(places), dict(zip(parts, places, strict=True))


def test_first_what_was_reached_then_what_to_look_at_then_the_notebook() -> None:
    page = read(scores=(0.0, 2.0, 0.0), result=result_of(FAILED), waiting=True)
    ordered(
        page.text,
        "Lab 00: A small lab",
        "1 of 5 points",
        "What you reached",
        "4 of 8 public cases pass.",
        "0 of 1",
        "What to look at",
        "rms(x, dim=1)",
        "dim is not used.",
        "What you can check at home",
        "Your notebook",
        "def rms(x, dim): ...",
        "4 of 8 cases pass; this one does not.",
    )
    assert "2 points are not given yet" in page.text and "– of 2" in page.text


def test_all_points_need_no_more_words() -> None:
    page = read(scores=(1.0, 2.0, 2.0), by_hand=True)
    assert "All cases pass." in page.text and "A person has read this answer." in page.text
    assert "What to look at" not in page.text and "not given yet" not in page.text


def test_of_hidden_cases_the_hint_alone() -> None:
    page = read(scores=(0.0, 2.0, 0.0), result=result_of(PASSED, HIDDEN))
    assert "The public cases pass, but not every hidden one does." in page.text
    assert "Think of other shapes." in page.text and "knows the public cases only" in page.text
    for secret in ("SECRET", "7,777", "8,888", "7777", "8888", "3 of 9"):
        assert secret not in page.text


def test_a_limit_on_a_hidden_case_says_so_and_no_more() -> None:
    limit = replace(HIDDEN, outcome="limit", hint=None)
    page = read(scores=(0.0, 2.0, 0.0), result=result_of(PASSED, limit))
    assert "On a hidden case it was stopped: too much time or memory" in page.text and "SECRET" not in page.text


def test_what_is_blank_is_said_once() -> None:
    blank = Verdict(EXERCISE, "unanswered", 0.0, f"{EXERCISE}: not answered yet.", n_cases=8)
    page = read(scores=(0.0, 2.0, 0.0), result=result_of(blank), comment="No response.")
    assert [text for text in page.texts if text == "Not answered"] == ["Not answered"]
    assert page.text.count("Not answered.") == 2  # a line of the table each: the exercise and the question
    assert "No response" not in page.text


def test_questions_under_one_heading_are_told_apart() -> None:
    notebook = graded_notebook(essay="**Z.** is no letter of the course's")
    question = notebook.cells[-1]
    second = deepcopy(question)
    second.id = second.metadata["nbgrader"]["grade_id"] = "00-open-second"
    notebook.cells[-2].source = "## Open questions\n\nHere are two.\n\n**A.** (2 points) Why?"
    notebook.cells += [new_markdown_cell("**B.** (2 points) And why not?", id="00-c006"), second]
    titles = [task.title for task in content_of(notebook, {**NAMES, "late_penalty": 0.0}, result_of()).tasks]
    assert titles[-2:] == ["Open questions, A", "Open questions, B"]


def test_late_work_comments_and_extra_points() -> None:
    page = read(scores=(1.0, 2.0, 1.0), comment="Good, but **which** bits?", late=1.5, score=2.5, by_hand=True)
    assert "The work came late, which cost 1.5 points." in page.text and "late work−1.5" in page.text
    assert "Comment from the person who graded it" in page.text and "Good, but which bits?" in page.text
    assert ("strong", {}) in page.tags


def test_points_are_never_below_zero() -> None:
    assert "0 of 5 points" in read(late=9.0, score=-8.0).text


def test_a_test_that_fails_shows_its_error() -> None:
    page = read(scores=(1.0, 0.0, 0.0), result=result_of(error="AssertionError: <b>no</b>"))
    assert page.text.count("AssertionError: <b>no</b>") == 2 and "The test does not pass." in page.text


def test_without_a_stored_result_the_points_alone_speak() -> None:
    page = read(scores=(0.0, 2.0, 0.0), result=None)
    assert "No points." in page.text and "All points." in page.text


def test_the_courses_text_is_folded_and_the_students_is_not() -> None:
    page = read(added="mine = 1")
    folded = [attributes for tag, attributes in page.tags if tag == "details" and attributes.get("class") == "course"]
    assert len(folded) == 3 and not any("open" in attributes for attributes in folded)
    assert "Course: Lab 00: A small lab · The warm-up" in page.text and "Hint 1: a nudge" in page.text
    assert page.text.count("A cell that you added") == 2
    assert "import torch" in page.text


def test_every_address_leads_somewhere_and_no_id_is_there_twice() -> None:
    page = read(scores=(0.0, 0.0, 0.0), result=result_of(FAILED, error="no"), added="x = 1")
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for tag, attributes in page.tags if tag == "a"} <= set(ids)


@pytest.mark.parametrize("essay", ["# One\n\n###### Six\n\n# One", "text"])
def test_headings_leave_out_no_level(essay: str) -> None:
    headings = read(essay=essay, added=essay).headings
    assert headings[0] == 1 and headings.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))


def test_nothing_of_a_students_is_active() -> None:
    evil = replace(FAILED, rows=(("got", EVIL), ("problem", EVIL)), headline=EVIL, hint=EVIL)
    page = read(
        answer=EVIL,
        essay=EVIL,
        printed=EVIL,
        added=EVIL,
        comment=EVIL,
        student=EVIL,
        scores=(0.0, 0.0, 0.0),
        result=result_of(evil, error=EVIL),
    )
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "img", "svg", "iframe", "object", "embed", "base", "form", "link", "input"}
    assert [tag for tag, _ in page.tags].count("style") == 1
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes) and "src" not in attributes
        if "href" in attributes:
            assert tag == "a" and re.match(r"#[\w-]+|https?://", attributes["href"]), attributes
    assert page.text.count("<script>alert(1)</script>") >= 8


def test_nothing_turns_the_direction_of_writing_or_steers_a_terminal() -> None:
    odd = "a\u202eb\x1b]0;x\x07\u2066c"
    evil = replace(FAILED, rows=(("got", odd),), headline=odd, hint=odd)
    text = page_of(
        graded_notebook(answer=odd, essay=odd, printed=odd, added=odd, comment=odd), result_of(evil, error=odd)
    )
    assert all(char == "\n" or char.isprintable() for char in text)
    assert text.count("a?b?]0;x??c") >= 9


def test_a_flood_is_cut_with_a_word() -> None:
    page = page_of(graded_notebook(printed="x" * 1_000_000), result_of())
    assert "[980,000 more characters were printed]" in page and len(page) < 100_000


def test_the_page_needs_no_other_file_and_lets_the_browser_load_none() -> None:
    text = page_of(graded_notebook(), result_of())
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<script", text)
    assert "default-src 'none'" in unescape(text) and '<html lang="en">' in text
    assert "<math" in text and "$" not in Read(text).text


def test_the_same_notebook_gives_the_same_page() -> None:
    assert page_of(graded_notebook(), result_of()) == page_of(graded_notebook(), result_of())


def test_who_may_stand_on_the_leaderboard_reads_their_name_there() -> None:
    content = content_of(graded_notebook(), {**NAMES, "late_penalty": 0.0}, result_of())
    page = Read(as_page(replace(content, on_the_board="amber-heron-7f3kq")))
    assert "On the leaderboard you are called amber-heron-7f3kq." in page.text
    assert "leaderboard" not in Read(as_page(content)).text
