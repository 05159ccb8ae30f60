"""A figure without words of its own is described by its titles, axes, legends and notes."""

from __future__ import annotations

import base64
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from IPython.core.formatters import DisplayFormatter
from IPython.core.pylabtools import select_figure_formats
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook, new_output

from labkit import figures
from labkit.figures import canvas
from labkit.figures.alt import MOST_CHARACTERS, described
from labkit.figures.canvas import new_figure


def test_a_chart_says_what_is_drawn_against_what_and_names_its_lines() -> None:
    figure, axes = new_figure()
    axes.plot([1, 2], [3, 4], label="fp32")
    axes.plot([1, 2], [3, 5], label="$2^{24}$ rows")
    axes.set(xlabel="rows in a batch", ylabel="MiB alive", title="two\nformats")
    axes.annotate("257 rows", (1, 3))
    axes.text(1, 3, "not there", visible=False)
    axes.legend()
    assert described(figure) == "two formats: MiB alive against rows in a batch; fp32, 2^24 rows; 257 rows"


def test_a_drawing_without_axes_says_what_is_written_in_it() -> None:
    said = described(figures.amp_step())
    assert said.startswith("weights float32, copies of them 16 bits") and "step, if all are finite" in said


def test_it_is_cut_between_words() -> None:
    figure, axes = new_figure()
    axes.set_xlabel("many words, " * 60)
    said = described(figure)
    assert len(said) <= MOST_CHARACTERS + 2 and said.endswith("words …")


def test_it_stays_when_a_notebook_loads_pyplot(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(display_formatter=DisplayFormatter())
    monkeypatch.setattr(canvas, "current_shell", lambda: shell)
    figure = figures.amp_step()
    select_figure_formats(shell, {"png"})  # what loading pyplot does, and ipywidgets load it
    for shown in (figure, figures.amp_step()):
        data, metadata = shell.display_formatter.format(shown)
        assert data["image/png"] == shown._repr_png_()[0]
        assert metadata["image/png"]["alt"] == shown.alt
        assert base64.b64encode(data["image/png"]).decode() in data["text/html"]


def test_a_notebook_gets_it_where_the_figure_has_no_words_of_its_own() -> None:
    figure, axes = new_figure()
    assert "alt" not in figure._repr_png_()[1]
    axes.set_xlabel("steps")
    assert figure._repr_png_()[1]["alt"] == "steps"
    figure.alt = "The loss falls."
    assert figure._repr_png_()[1]["alt"] == "The loss falls."


def test_a_page_made_of_a_notebook_says_it_beside_the_picture() -> None:
    """nbconvert's own page for labs, and JupyterLab, show HTML before a PNG, and of a PNG they leave the words out."""
    figure, _ = new_figure()
    figure.alt = 'A loss < 2 that "falls".'
    data, metadata = DisplayFormatter().format(figure)
    data["image/png"] = base64.b64encode(data["image/png"]).decode()
    cell = new_code_cell("figure", outputs=[new_output("display_data", data, metadata=metadata)])
    page, _ = HTMLExporter().from_notebook_node(new_notebook(cells=[cell]))
    (picture,) = BeautifulSoup(page, "html.parser").select("img")
    assert picture["alt"] == figure.alt
    assert picture["src"] == f"data:image/png;base64,{data['image/png']}" and picture["width"] == "720"


def test_a_drawing_that_is_drawn_anew_for_other_sizes_says_so() -> None:
    assert "Step 1: rank 0 sends chunk 2 to rank 1, rank 1 sends chunk 0" in figures.ring_plan(n_ranks=3, n_steps=2).alt
    assert "from key tile 0 to tile 4" in figures.query_walk(block=4).alt
    assert (
        "Program 1 has the 4 offsets from 4 to 7. Where an offset is less than 6" in figures.masked_block(6, 4, 1).alt
    )
