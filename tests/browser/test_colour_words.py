"""A student colours lab 17's data flow in JupyterLab: a click gives a box its next word, a later cell marks them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.pages import Notebook, shoot_in_both_themes
from tests.browser.server import JupyterLab, start

pytestmark = [pytest.mark.browser, pytest.mark.full("browser"), pytest.mark.lab("17")]

CELLS = (
    "import labkit.figures\nfrom labkit.material.lab17_words import Colouring\n\n"
    "colouring = Colouring()\nlabkit.figures.colour_words(colouring)",
    "labkit.figures.tensor_words(yours=colouring)",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[JupyterLab]:
    """JupyterLab on a notebook with the two cells of the lab."""
    pytest.importorskip("ipywidgets")
    folder = tmp_path_factory.mktemp("student")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    nbformat.write(notebook, work / "words.ipynb")
    server = start(work, home)
    yield server
    server.stop()


def test_boxes_are_coloured_by_clicking_and_compared_later(lab: JupyterLab, page: Page) -> None:
    notebook = Notebook.open(page, lab, Path(lab.root, "words.ipynb"))
    game = notebook.cell("colour_words")
    notebook.run(game)
    picture = game.locator("img")
    expect(picture).to_be_visible()
    box = game.get_by_role("button", name="into A", exact=True)
    expect(box).to_have_count(2)
    box.nth(1).click()
    expect(picture).to_have_attribute("alt", re.compile(r"Coloured so far: gradient of into A replicated$"))
    box.nth(1).click()
    game.get_by_role("button", name="x", exact=True).first.click()
    expect(picture).to_have_attribute("alt", re.compile(r"far: x replicated, gradient of into A sharded$"))
    shoot_in_both_themes(page, game, "colour-words")
    compared = notebook.cell("tensor_words")
    notebook.run(compared)
    expect(compared.locator("img")).to_have_attribute("alt", re.compile("^1 of the 2 words"))
    shoot_in_both_themes(page, compared, "colour-words-compared")
