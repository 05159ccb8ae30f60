"""A class on a real JupyterHub: fetched, answered and submitted in the browser, collected, graded, feedback fetched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.hub import PASSWORD, Hub, start
from tests.browser.pages import Notebook, choose_menu, shoot
from tests.grading.campus import NEEDS_ACCOUNTS, REPOSITORY, Campus, open_campus
from tests.grading.lessons import LAB, SOLUTION

pytestmark = [pytest.mark.browser, pytest.mark.full("classroom"), pytest.mark.timeout(900), *NEEDS_ACCOUNTS]

WRONG = "def rms(x, dim):\n    return x.pow(2).mean().sqrt()"
SETTINGS = 'c = get_config()\nc.Exchange.root = "/mnt/exchange"\nc.CourseDirectory.course_id = "small"\n'
ANSWERS = {"ada": SOLUTION, "bob": WRONG}
SCORES = {"ada": "together 3 of 5", "bob": "together 2 of 5"}


@pytest.fixture(scope="module")
def campus(tmp_path_factory) -> Campus:
    campus = open_campus(tmp_path_factory.mktemp("campus"))
    for name in ANSWERS:
        # What an administrator writes for all accounts into /etc/jupyter.
        campus.run(name, "mkdir", "-p", "/mnt/home/.jupyter")
        (campus.home(name) / ".jupyter" / "nbgrader_config.py").write_text(SETTINGS)
    return campus


@pytest.fixture(scope="module")
def hub(campus: Campus, tmp_path_factory, browser: Browser) -> Iterator[Hub]:
    hub = start(campus, tmp_path_factory.mktemp("hub"))
    yield hub
    assert len(hub.servers()) > len(ANSWERS)
    hub.stop()
    assert hub.servers() == []


def sign_in(page: Page, hub: Hub, name: str) -> None:
    page.goto(hub.url)
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#jp-main-dock-panel")).to_be_visible(timeout=180_000)


def open_assignments(page: Page) -> None:
    choose_menu(page, "Nbgrader", "Assignment List")


def hand_in(page: Page, hub: Hub, name: str, answer: str) -> None:
    """Fetch the lab, answer it and submit it, all in the browser."""
    sign_in(page, hub, name)
    page.locator(".lm-MenuBar-item", has_text="Nbgrader").click()
    expect(page.locator(".lm-Menu-itemLabel").filter(has_text="Assignment List")).to_be_visible()
    expect(page.locator(".lm-Menu-itemLabel").filter(has_text="Formgrader")).to_be_hidden()
    page.keyboard.press("Escape")
    open_assignments(page)
    page.locator("#released_assignments_list").get_by_role("button", name="Fetch").click()
    expect(page.locator("#fetched_assignments_list")).to_contain_text(LAB)
    page.goto(f"{hub.url}user/{name}/lab/tree/{LAB}/{LAB}.ipynb?reset")
    notebook = Notebook(page)
    expect(page.locator(".jp-Notebook-cell").first).to_be_visible()
    expect(page.locator(".jp-Toolbar-kernelName")).to_contain_text("Python 3")
    notebook.wait_until_idle()
    notebook.type_into(notebook.cell("def rms"), answer)
    choose_menu(page, "File", "Save Notebook")
    expect(page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")).to_have_count(0)
    open_assignments(page)
    page.locator("#fetched_assignments_list").get_by_role("button", name="Submit").click()
    expect(page.locator("#submitted_assignments_list")).to_contain_text(LAB)


def succeeds(done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_class_from_fetch_to_feedback(campus: Campus, hub: Hub, browser: Browser) -> None:
    pages = {}
    for name, answer in ANSWERS.items():
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(120_000)
        pages[name] = context.new_page()
        hand_in(pages[name], hub, name, answer)
        shoot(pages[name], f"hub-1-{name}-submitted")
    succeeds(campus.teacher("collect", "/mnt/course", "00", "--exchange"))
    # A sandbox is not opened within the namespace of an account: grading is done beside it, with the teacher's files.
    words = [sys.executable, "-m", "grading", "grade", str(campus.top / "course"), "00", "--workers", "1"]
    succeeds(subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=300))
    campus.give_course_to_teacher()
    succeeds(campus.teacher("feedback", "/mnt/course", "00", "--exchange"))
    for name, page in pages.items():
        open_assignments(page)
        submitted = page.locator("#submitted_assignments_list")
        submitted.get_by_role("button", name="Fetch Feedback").click()
        submitted.get_by_text("(view feedback)").click()
        page.locator(".jp-DirListing-item", has_text=f"{LAB}.html").dblclick()
        shown = page.frame_locator(".jp-HTMLViewer iframe")
        expect(shown.get_by_role("row", name=SCORES[name])).to_be_visible()
        shoot(page, f"hub-2-{name}-feedback")
        page.context.close()
