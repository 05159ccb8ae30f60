"""An instructor looks at a graded class in nbgrader's formgrader, and grades a late hand-in with its button."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect

from grading.gradebook.course import Course
from tests.browser.pages import choose_menu, shoot
from tests.browser.server import JupyterLab, environment, start
from tests.exercises.harness import TESTS, solution_of

pytestmark = pytest.mark.browser

LAB = "00_start_here"
EXERCISE = "00-warm-up"
ANSWERS = {
    "ada": solution_of(EXERCISE),
    "blank": None,
    "O'Brien, Pat": (TESTS / "wrong" / "00-warm-up__ignores-dim.py").read_text(),
    "zoe": solution_of(EXERCISE),
}
LATECOMER = "zoe"  # hands in after the others were graded


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[JupyterLab]:
    """JupyterLab on a course whose class is graded, but for one."""
    folder = tmp_path_factory.mktemp("instructor")
    home, root = folder / "home", folder / "course"
    home.mkdir()
    for words in (["course", root], ["release", root]):
        command(home, *words)
    for student in ANSWERS:
        hand_in(Course.at(root), student)
    graded = [word for student in ANSWERS if student != LATECOMER for word in ("--student", student)]
    command(home, "grade", root, "00", "--workers", "1", *graded)
    server = start(root, home)
    yield server
    server.stop()


def command(home: Path, *words: object) -> None:
    """`python -m grading ...` as an instructor types it."""
    line = [sys.executable, "-m", "grading", *map(str, words)]
    done = subprocess.run(line, env=environment(home), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr


def hand_in(course: Course, student: str) -> None:
    notebook = nbformat.read(course.root / "release" / LAB / f"{LAB}.ipynb", 4)
    answer = next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == EXERCISE)
    answer.source = ANSWERS[student] or answer.source
    path = course.submitted(LAB, student)
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def open_formgrader(page: Page, lab: JupyterLab) -> FrameLocator:
    """Formgrader as the menu of JupyterLab opens it: a page within the page."""
    page.goto(f"{lab.url}lab?token={lab.token}&reset")
    choose_menu(page, "Nbgrader", "Formgrader")
    return page.frame_locator("#formgrader iframe, iframe")


def test_dump(lab, page):
    f = open_formgrader(page, lab)
    expect(f.locator("body")).to_contain_text(LAB)
    page.wait_for_timeout(1500)
    shoot(page, "instructor-1-assignments")
    print(page.locator("iframe").first.evaluate("e=>e.outerHTML"))
    print(f.locator("table").inner_html())
    page.goto(f"{lab.url}formgrader/manage_submissions/{LAB}")
    page.wait_for_timeout(1500)
    print(page.locator("table").inner_html())
    shoot(page, "instructor-2-submissions")
    page.goto(f"{lab.url}formgrader/gradebook/{LAB}/{LAB}")
    page.wait_for_timeout(1500)
    print(page.locator("table").inner_html())
    shoot(page, "instructor-3-sub")
