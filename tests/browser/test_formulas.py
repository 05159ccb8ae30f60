"""What a student writes between dollar signs stays text in a verdict, wherever the page sets formulas."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlparse

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Browser, Page, Route, expect

from grading.gradebook.feedback import make_feedback
from labkit.check.html import as_html
from labkit.check.verdict import Verdict
from tests.browser.pages import Notebook, shoot
from tests.browser.server import start
from tests.grading.lessons import LAB, cell_of, grade, make_course, submit
from tests.lanes import missing

pytestmark = [pytest.mark.browser, pytest.mark.full("browser")]

TEXTS = (
    r"$\llap{\colorbox{white}{passed, 1 of 1 points}}$",
    r"$$\phantom{all of it is gone}$$",
    r"\(\text{set}\)",
    r"\begin{align} x &= 1 \end{align}",
)
RAISES = f"def rms(x, dim):\n    raise ValueError({' and '.join(TEXTS)!r})"
MATHJAX = Path("/usr/share/javascript/mathjax")
"""Of the package libjs-mathjax: the release that nbgrader's pages load from cdnjs.cloudflare.com, or the next."""


@pytest.fixture
def formulas(page: Page) -> Page:
    """A page that reaches no network, and finds MathJax where nbgrader's pages look for it."""
    if not (MATHJAX / "MathJax.js").is_file():
        missing("MathJax", "this test sets formulas as a feedback page does", "sudo apt install libjs-mathjax")

    def answer(route: Route) -> None:
        address = route.request.url
        if "/latest.js" in address:
            # As the network's does: MathJax finds its settings by the name of its own script.
            script = f'<script src="{address.replace("/latest.js", "/MathJax.js")}"></script>'
            route.fulfill(content_type="text/javascript", body=f"document.write({script!r})")
            return
        file = MATHJAX / urlparse(address).path.split("/mathjax/2.7.7/")[-1]
        route.fulfill(path=file) if file.is_file() else route.abort()

    page.context.route("http**", answer)
    return page


def write(notebook: NotebookNode) -> None:
    cell_of(notebook, "00-open").source = r"My own formula: $\frac{1}{2}$"


def test_a_feedback_page_sets_the_formulas_of_a_text_and_none_of_a_verdict(formulas: Page, tmp_path: Path) -> None:
    course = make_course(tmp_path / "course")
    submit(course, "mallory", RAISES, change=write)
    assert grade(course, LAB, ["mallory"], workers=1, isolation="none") == []
    assert make_feedback(course, LAB) == 1

    formulas.goto(course.feedback(LAB, "mallory").as_uri())
    formulas.evaluate("new Promise(done => MathJax.Hub.Queue(done))")
    shoot(formulas, "feedback-formulas")
    expect(formulas.locator(".mjx-chtml")).to_have_count(1)
    expect(formulas.locator(".text_cell_render .mjx-chtml")).to_have_count(1)
    box = formulas.locator(".labkit-verdict").first
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
