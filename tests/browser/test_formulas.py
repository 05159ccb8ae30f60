"""What a student writes between dollar signs stays text in a verdict, wherever the page sets formulas."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Browser, Page, expect

from grading.gradebook.feedback import make_feedback
from labkit.check.html import as_html
from labkit.check.verdict import Verdict
from tests.browser.pages import Notebook, shoot
from tests.browser.server import start
from tests.grading.lessons import LAB, cell_of, grade, make_course, submit

pytestmark = [pytest.mark.browser, pytest.mark.full("browser")]

TEXTS = (
    r"$\llap{\colorbox{white}{passed, 1 of 1 points}}$",
    r"$$\phantom{all of it is gone}$$",
    r"\(\text{set}\)",
    r"\begin{align} x &= 1 \end{align}",
)
RAISES = f"def rms(x, dim):\n    raise ValueError({' and '.join(TEXTS)!r})"


def write(notebook: NotebookNode) -> None:
    cell_of(notebook, "00-open").source = r"My own formula: $\frac{1}{2}$"


def test_a_feedback_page_sets_the_formulas_of_a_text_and_none_of_a_verdict(page: Page, tmp_path: Path) -> None:
    course = make_course(tmp_path / "course")
    submit(course, "mallory", RAISES, change=write)
    assert grade(course, LAB, ["mallory"], workers=1, isolation="none") == []
    assert make_feedback(course, LAB) == 1

    page.context.route("http**", lambda route: route.abort())
    page.goto(course.feedback(LAB, "mallory").as_uri())
    shoot(page, "feedback-formulas")
    expect(page.locator("math")).to_have_count(1)
    expect(page.locator(".text math mfrac")).to_be_visible()
    # One number stands above the other.
    one, two = (page.locator("mfrac mn").nth(n).bounding_box() for n in (0, 1))
    assert one["y"] + one["height"] <= two["y"] + 1
    box = page.locator(".labkit-verdict").first
    for text in TEXTS:
        expect(box).to_contain_text(text)


def test_so_does_jupyterlab(browser: Browser, page: Page, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    verdict = Verdict("00-x", "failed", 0.0, TEXTS[0], rows=tuple(("got", text) for text in TEXTS), hint=TEXTS[2])
    show = f"from IPython.display import HTML\nHTML({as_html(verdict)!r} + r'<p>$\\frac{{1}}{{2}}$</p>')"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = new_notebook(cells=[new_code_cell(show)], metadata={"kernelspec": kernel})
    nbformat.write(notebook, work / "formulas.ipynb")
    server = start(work, home)
    try:
        opened = Notebook.open(page, server, work / "formulas.ipynb")
        cell = opened.cell("display import HTML")
        opened.run(cell)
        expect(cell.locator(".jp-OutputArea mjx-container")).to_have_count(1)
        box = cell.locator(".labkit-verdict")
        expect(box.locator("mjx-container")).to_have_count(0)
        for text in TEXTS:
            expect(box).to_contain_text(text)
    finally:
        server.stop()
