"""A student does the first exercise of lab 02 in JupyterLab: wrong, then right, then nbgrader's Validate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from grading.build import build
from grading.demo.examples import example
from labkit import exercises
from tests.browser.pages import Notebook, shoot, shoot_in_both_themes
from tests.browser.server import REPOSITORY, JupyterLab, start
from tests.exercises.harness import solution_of

pytestmark = pytest.mark.browser

WRONG = example("wrong", "02-decode/no_subnormals")
UNANSWERED = "not answered yet. Write your answer in the cell above, run it, then run this one."


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[JupyterLab]:
    """JupyterLab on a student's own copies of the labs, as built now."""
    folder = tmp_path_factory.mktemp("student")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    for source in sorted((REPOSITORY / "solutions").glob("[0-9][0-9]_*.py")):
        nbformat.write(build(source).student, work / f"{source.stem}.ipynb")
    server = start(work, home)
    yield server
    server.stop()


def work_copy(lab: JupyterLab, name: str) -> Path:
    """A fresh copy of lab 02 under a name of its own."""
    (original,) = lab.root.glob("02_*.ipynb")
    copy = lab.root / f"{name}.ipynb"
    copy.write_bytes(original.read_bytes())
    return copy


def do(notebook: Notebook, source: str) -> Locator:
    """Type an answer into the first exercise, run it and its check, and return the check's cell."""
    cell = notebook.cell("def decode(")
    notebook.type_into(cell, source)
    notebook.run(cell)
    check = notebook.cell('check("02-decode"')
    notebook.run(check)
    return check


def solved() -> str:
    """The solution as a student would type it."""
    return "\n".join(line for line in solution_of("02-decode").strip().split("\n") if "### " not in line)


def test_a_wrong_answer_gets_its_hint_and_the_right_one_a_green_line(lab: JupyterLab, page: Page) -> None:
    notebook = Notebook.open(page, lab, work_copy(lab, "first_try"))
    expect(page.get_by_role("heading", name="Lab 02")).to_be_visible()
    shoot(page, "student-1-lab-opens")

    notebook.run_all_above(notebook.cell("def decode("))
    check = do(notebook, WRONG.source.strip())
    box = check.locator(".labkit-verdict")
    expect(box).to_contain_text("✗")
    expect(box).to_contain_text("Hint.")
    expect(box).to_contain_text(WRONG.hint.replace("`", ""))  # set as code there
    # What stops the notebook is one line below the box, and no traceback.
    stop = check.locator(".jp-OutputArea-output:not(:has(.labkit-verdict))")
    expect(stop).to_have_count(1)
    expect(stop).to_have_text(re.compile("^CheckFailed: [^\n]*\n?$"))
    notebook.wait_until_idle()
    shoot(page, "student-2-wrong")
    shoot_in_both_themes(page, box, "student-2-wrong-box")

    do(notebook, solved())
    expect(box).to_contain_text("✓")
    expect(box).not_to_contain_text("✗")
    expect(stop).to_have_count(0)
    notebook.wait_until_idle()
    shoot(page, "student-3-right")
    shoot_in_both_themes(page, box, "student-3-right-box")


@pytest.mark.full("browser")
def test_validate_names_what_is_left(lab: JupyterLab, page: Page) -> None:
    notebook = Notebook.open(page, lab, work_copy(lab, "handed_in"))
    notebook.type_into(notebook.cell("def decode("), solved())
    page.get_by_role("button", name="Validate").click()
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("Validation Results")
    shoot(page, "student-4-validate")

    # Only what is left, each by its name and in one line of ours.
    said = [line for line in dialog.locator("pre").all_inner_texts() if "CheckFailed" in line]
    left = [name for name in exercises.of_lab("02") if name != "02-decode"]
    assert [line.strip() for line in said] == [f"CheckFailed: {each}: {UNANSWERED}" for each in left]
    expect(dialog).not_to_contain_text("Traceback")
    expect(dialog).not_to_contain_text("Error:")
    dialog.get_by_role("button", name="Ok").click()
    expect(dialog).to_have_count(0)
