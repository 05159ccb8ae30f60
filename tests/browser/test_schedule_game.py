"""A student plays lab 18's schedule in JupyterLab: passes are added, illegal ones refused in words, undo undoes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.pages import Notebook, shoot
from tests.browser.server import JupyterLab, start

pytestmark = [pytest.mark.browser, pytest.mark.full("browser"), pytest.mark.lab("18")]

CELL = "import labkit.figures\n\nlabkit.figures.schedule_game(n_stages=2, n_microbatches=2)"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[JupyterLab]:
    """JupyterLab on a notebook with the game alone: its rules are the labs', and its cell is."""
    pytest.importorskip("ipywidgets")
    folder = tmp_path_factory.mktemp("student")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    nbformat.write(notebook, work / "game.ipynb")
    server = start(work, home)
    yield server
    server.stop()


def image(cell: Locator) -> str:
    return cell.locator("img").get_attribute("src") or ""


def test_a_schedule_is_played_by_clicking(lab: JupyterLab, page: Page) -> None:
    notebook = Notebook.open(page, lab, Path(lab.root, "game.ipynb"))
    cell = notebook.cell("schedule_game")
    notebook.run(cell)
    said = cell.locator(".schedule-said")
    expect(said).to_contain_text("8 passes to go")

    def click(name: str) -> None:
        cell.get_by_role("button", name=name, exact=True).click()

    click("forward 0")
    expect(said).to_contain_text("7 passes to go")
    expect(cell.locator("img")).to_be_visible()
    before = image(cell)
    click("backward 0")
    expect(said).to_have_text(
        "Not yet: the backward pass of micro-batch 0 on stage 0 needs the backward pass of micro-batch 0 on stage 1, "
        "which has not been played."
    )
    shoot(cell, "schedule-1-refused")
    click("forward 1")
    expect(said).to_contain_text("6 passes to go")
    expect(cell.locator("img")).not_to_have_attribute("src", before)
    click("undo")
    expect(said).to_contain_text("7 passes to go")
    for name in ("forward 0", "forward 1", "backward 1", "backward 0", "forward 1", "backward 1", "backward 0"):
        click(name)
    expect(said).to_have_text("Done in 9 units of time (no order takes less); stages hold at most 2, 1.")
    shoot(cell, "schedule-2-done")
