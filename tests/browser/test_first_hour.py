"""What a student sees who types `make lab` for the first time: the first lab, no question, no instructor's panel."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import shoot
from tests.browser.server import REPOSITORY, JupyterLab, start_program

pytestmark = [pytest.mark.browser, pytest.mark.full("browser")]

NEWS = "Would you like to get notified about official Jupyter news?"
INSTRUCTORS = ("Formgrader", "Course List", "Create assignment")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The part of the bundle that `make lab` needs."""
    for folder in ("notebooks", "work"):
        (tmp_path / "tree" / folder).mkdir(parents=True)
    shutil.copytree(REPOSITORY / ".make", tmp_path / "tree" / ".make")
    for name in ("00_start_here", "02_float_formats"):
        shutil.copy(REPOSITORY / "notebooks" / f"{name}.ipynb", tmp_path / "tree" / "notebooks")
    return tmp_path / "tree"


def open_lab(page: Page, lab: JupyterLab, path: str = "") -> None:
    page.goto(f"{lab.url}lab{path}?token={lab.token}")
    expect(page.locator("#jp-main-dock-panel")).to_be_visible(timeout=180_000)
    page.get_by_role("menuitem", name="Nbgrader").click(timeout=180_000)


def home_of(tree: Path) -> Path:
    home = tree.parent / "home"
    home.mkdir()
    return home


def test_make_lab_asks_nothing_and_shows_what_students_need(tree: Path, page: Page) -> None:
    lab = start_program([sys.executable, str(tree / ".make" / "lab.py")], tree / "work", home_of(tree))
    try:
        open_lab(page, lab, "/tree/00_start_here.ipynb")
        menu = page.locator(".lm-Menu")
        expect(menu).to_contain_text("Assignment List")
        for panel in INSTRUCTORS:
            expect(menu).not_to_contain_text(panel)
        page.keyboard.press("Escape")
        expect(page.get_by_role("heading", name="Lab 00: Start here")).to_be_visible()
        shoot(page, "first-hour")
        expect(page.get_by_text(NEWS)).to_have_count(0)
    finally:
        lab.stop()


def test_without_its_settings_jupyterlab_would_ask_and_show_them(tree: Path, page: Page) -> None:
    shutil.rmtree(tree / ".make" / "jupyter")
    lab = start_program([sys.executable, str(tree / ".make" / "lab.py")], tree / "work", home_of(tree))
    try:
        open_lab(page, lab)
        for panel in INSTRUCTORS:
            expect(page.locator(".lm-Menu")).to_contain_text(panel)
        page.keyboard.press("Escape")
        expect(page.get_by_text(NEWS)).to_be_visible()
    finally:
        lab.stop()
