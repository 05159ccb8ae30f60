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

from grading.course import Course
from grading.demo.examples import example
from tests.browser.pages import choose_menu, shoot
from tests.browser.server import JupyterLab, environment, start
from tests.exercises.harness import solution_of

pytestmark = [pytest.mark.browser, pytest.mark.full("browser"), pytest.mark.timeout(900)]

LAB = "00_start_here"
EXERCISE = "00-warm-up"
WRONG = example("wrong", "00-warm-up/ignores_dim")
ANSWERS = {
    "ada": solution_of(EXERCISE),
    "blank": None,
    "O'Brien, Pat": WRONG.source,
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
    """Formgrader as JupyterLab's menu opens it: a page within the page."""
    page.set_viewport_size({"width": 1600, "height": 1000})
    page.goto(f"{lab.url}lab?token={lab.token}&reset")
    choose_menu(page, "Nbgrader", "Formgrader")
    formgrader = page.frame_locator("iframe")
    expect(formgrader.get_by_role("link", name=LAB, exact=True)).to_be_visible()
    return formgrader


def row_of(formgrader: FrameLocator, student: str) -> Locator:
    return formgrader.locator("#main-table tr", has_text=student)


def open_submissions(formgrader: FrameLocator) -> None:
    """The table of who handed in the lab, reached by the number of submissions."""
    formgrader.locator("#main-table tr", has_text=LAB).locator(".num-submissions a").click()
    expect(formgrader.locator("#main-table tr")).to_have_count(len(ANSWERS))


def test_formgrader_shows_the_class_with_its_scores(lab: JupyterLab, page: Page) -> None:
    formgrader = open_formgrader(page, lab)
    shoot(page, "instructor-1-formgrader")
    open_submissions(formgrader)
    for student, score in (("ada", "1 / 1"), ("blank", "0 / 1"), ("O'Brien, Pat", "0 / 1")):
        expect(row_of(formgrader, student).locator(".status")).to_have_text("graded")
        expect(row_of(formgrader, student).locator(".score")).to_have_text(score)
    shoot(page, "instructor-2-class")


def test_the_autograde_button_takes_the_supervised_path(lab: JupyterLab, page: Page) -> None:
    formgrader = open_formgrader(page, lab)
    open_submissions(formgrader)
    late = row_of(formgrader, LATECOMER)
    expect(late.locator(".status")).to_have_text("needs autograding")
    late.locator(".autograde a").click()
    expect(formgrader.locator(".modal-title")).to_have_text("Success")
    shoot(page, "instructor-3-autograde-button")
    expect(late.locator(".status")).to_have_text("graded")
    expect(late.locator(".score")).to_have_text("1 / 1")

    # Only our grader writes a job's key into the notebook, and keeps the job's result beside the gradebook.
    course = Course.at(lab.root)
    job = nbformat.read(course.autograded(LAB, LATECOMER), 4).metadata["grading"]["job"]
    assert json.loads(course.result(LAB, job).read_text())["student"] == LATECOMER


def test_manual_grading_shows_the_verdict(lab: JupyterLab, page: Page) -> None:
    formgrader = open_formgrader(page, lab)
    formgrader.get_by_role("link", name="Manual Grading").click()
    for _ in ("assignment", "notebook"):  # a lab has one notebook, of its own name
        formgrader.get_by_role("link", name=LAB, exact=True).click()
    # The names are hidden until an instructor asks for them, but they are there.
    row_of(formgrader, "O'Brien, Pat").locator("a.name-hidden").click()
    box = formgrader.locator(".labkit-verdict").last
    expect(box).to_contain_text("✗")
    expect(box).to_contain_text(WRONG.hint.replace("`", ""))  # set as code there
    expect(formgrader.locator("input.score")).to_have_attribute("placeholder", "0")
    box.scroll_into_view_if_needed()
    shoot(page, "instructor-4-manual-grading")
