"""What pages are made of, piece by piece, without Sphinx."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from grading.build.compile import Built
from grading.build.student import student_version
from grading.errors import UserError
from grading.site import api_page, course_pages, lab_page
from grading.site.answers import answers_of
from grading.site.executed import execute, keep, kept
from grading.site.make import Wish, make_site
from grading.site.prerequisites import drawing
from labkit.labs import Lab

ANSWER = """import torch


def codebook():
    ### BEGIN SOLUTION
    steps = torch.linspace(-1.0, 1.0, 15)
    return steps.square() * 0.6962
    ### END SOLUTION"""
META = {
    "nbgrader": {
        "grade": False,
        "grade_id": "20-codes",
        "locked": False,
        "schema_version": 3,
        "solution": True,
        "task": False,
    }
}


def picture() -> str:
    drawn = io.BytesIO()
    Image.new("RGB", (4, 2)).save(drawn, "PNG")
    return base64.b64encode(drawn.getvalue()).decode()


def printed(text: str):
    return [new_output("stream", name="stdout", text=text)]


@pytest.fixture
def lab() -> Built:
    cells = [
        new_code_cell("first = 1", id="20-c001"),
        new_code_cell(ANSWER, id="20-codes", metadata=META),
        new_code_cell("print(first)", id="20-c003"),
        new_code_cell("print(codebook().sum())", id="20-c004"),
        new_code_cell("labkit.figures.source_heat(profile)", id="20-c005"),
        new_code_cell("labkit.figures.bars(first)", id="20-c006"),
        new_code_cell("labkit.figures.player(first)", id="20-c007"),
        new_code_cell("held_lines()", id="20-c008"),
    ]
    solved = new_notebook(cells=cells)
    return Built("20_small", solved, student_version(solved))


@pytest.fixture
def ran(lab: Built):
    notebook = lab.solution.copy()
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "box"}}
    image = {"image/png": picture()}
    told = {"image/png": {"alt": "two <bars>", "width": 2, "height": 1}}
    outputs = {
        "20-codes": printed("from the answer itself"),
        "20-c003": printed("1"),
        "20-c004": printed("3.14"),
        "20-c005": [new_output("display_data", data=image)],
        "20-c006": [new_output("display_data", data=image, metadata=told)],
        "20-c007": [new_output("display_data", data=widget)],
        "20-c008": printed("held: 4 KiB by `steps = torch.linspace(-1.0, 1.0,  15)`"),
    }
    for cell in notebook.cells:
        cell.outputs = outputs.get(cell.id, [])
    first = {"output_type": "display_data", "data": image, "metadata": told}
    states = {"box": {"state": {"children": ["IPY_MODEL_out"]}}, "out": {"state": {"outputs": [first]}}}
    notebook.metadata.widgets = {lab_page.STATE: {"state": states}}
    return notebook


def shown(page, cell_id: str) -> str:
    (cell,) = (cell for cell in page.cells if cell.id == cell_id)
    return " ".join(out.get("text", "") + out.get("data", {}).get("text/html", "") for out in cell.outputs)


def test_a_page_has_the_stub_and_what_gives_nothing_away(lab: Built, ran, tmp_path: Path) -> None:
    page = lab_page.lab_page(lab, ran, tmp_path)
    answer = next(cell for cell in page.cells if cell.id == "20-codes")
    assert "NotImplementedError" in answer.source and "linspace" not in answer.source
    assert shown(page, "20-codes") == "" and shown(page, "20-c003") == "1"
    for secret in ("20-c004", "20-c005", "20-c008"):
        assert lab_page.HIDDEN in shown(page, secret)
    assert lab_page.STATE not in str(page.metadata)


def test_pictures_are_files_with_their_words(lab: Built, ran, tmp_path: Path) -> None:
    page = lab_page.lab_page(lab, ran, tmp_path)
    (name,) = {path.name for path in tmp_path.iterdir()}
    image = f'<img src="../_static/figures/{name}" alt="two &lt;bars&gt;" width="2" height="1"'
    assert image in shown(page, "20-c006")
    assert image in shown(page, "20-c007") and lab_page.SLIDERS in shown(page, "20-c007")


def test_a_lab_that_has_not_run_has_no_outputs(lab: Built, tmp_path: Path) -> None:
    page = lab_page.lab_page(lab, None, tmp_path)
    assert not any(cell.get("outputs") for cell in page.cells)


def test_what_the_student_reads_is_no_secret(lab: Built) -> None:
    assert answers_of(lab.solution, lab.student).lines == {
        "steps=torch.linspace(-1.0,1.0,15)",
        "returnsteps.square()*0.6962",
    }
    told = lab.student.copy()
    told.cells[0].source += "\n# Hint: `return steps.square() * 0.6962`"
    assert answers_of(lab.solution, told).lines == {"steps=torch.linspace(-1.0,1.0,15)"}


@pytest.mark.full("classroom")
def test_no_kernel_stays_when_its_notebook_has_run() -> None:
    cell = new_code_cell("import os, sys\nprint(os.getpid(), 'ipykernel' in sys.modules)")
    ran = execute(new_notebook(cells=[new_markdown_cell("# A lab"), cell]))
    number, is_kernel = ran.cells[1].outputs[0].text.split()
    assert is_kernel == "True"
    assert not psutil.pid_exists(int(number))


def test_runs_are_kept_until_the_notebook_changes(lab: Built, ran, tmp_path: Path) -> None:
    assert kept(lab, tmp_path) is None
    keep(lab, ran, tmp_path)
    assert kept(lab, tmp_path).cells[2].outputs[0].text == "1"
    lab.solution.cells[0].source = "first = 2"
    assert kept(lab, tmp_path) is None
    assert kept(lab, tmp_path, also_older=True) is not None
    keep(lab, ran, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1, "what was kept before is gone"


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="holds something else: name a folder that is empty"):
        make_site(Wish(out=tmp_path, quick=True), print)
    assert (tmp_path / "thesis.tex").exists()


def test_links_between_files_become_links_between_pages() -> None:
    root = course_pages.ROOT
    pages = {root / "docs" / "map.md": Path("instructors", "map.md"), root / "grading" / "README.md": Path("g.md")}
    text = "[a](map.md) [b](../grading/README.md#tiers) [c](../Makefile) [d](https://example.org) [e](#here)"
    page = Path("instructors", "collecting.md")
    assert course_pages.relinked(text, root / "docs" / "collecting.md", page, pages) == (
        "[a](map.md) [b](../g.md#tiers) c [d](https://example.org) [e](#here)"
    )
    fenced = "```\n[a](map.md)\n```"
    assert course_pages.relinked(fenced, root / "README.md", page, pages) == fenced


def test_the_readme_has_the_section_that_instructors_read() -> None:
    readme = (course_pages.ROOT / "README.md").read_text()
    assert "python -m grading grade" in course_pages.section(readme, "For instructors")
    with pytest.raises(ValueError, match="no section 'For cats'"):
        course_pages.section(readme, "For cats")


def test_every_public_name_is_on_the_page_of_the_api() -> None:
    import labkit

    named = [name for names in api_page.GROUPS.values() for name in names]
    assert sorted(named) == sorted(labkit.__all__)
    page = api_page.api_page()
    assert [name for name in named if f"### {name}\n" not in page] == []
    assert re.search(r"class Timing\(.*times_ms", page, re.DOTALL)


def test_a_docstring_is_markdown_whose_examples_are_code() -> None:
    said = "What `a*b` does to *args_ and <b>.\n\n    f(1)\n\n    g(2)\n\nraises: `X`."
    assert api_page.prose(said) == (
        "What `a*b` does to \\*args\\_ and \\<b\\>.\n\n```python\nf(1)\n\ng(2)\n```\n\nraises: `X`."
    )


def test_a_call_is_shown_as_it_is_written() -> None:
    def short(x: int, *, deep: str | None = None) -> Built: ...

    assert api_page.called("short", short) == "short(x: int, *, deep: str | None = None) -> Built"
    shown_long = api_page.called("a_name_that_is_so_long_that_the_call_needs_several_lines", short)
    assert shown_long.endswith("(\n    x: int,\n    *,\n    deep: str | None = None,\n) -> Built")


def test_the_drawing_has_every_lab_and_every_need() -> None:
    labs = (
        Lab("01", "One & all", "memory", 5),
        Lab("02", "Two", "memory", 5, needs=("01",)),
        Lab("03", "Three", "end"),
    )
    drawn = drawing(labs)
    assert drawn.count("<rect") == 3 and drawn.count("marker-end") == 1 and drawn.count('class="planned"') == 1
    assert "lab 02 needs 01." in drawn and "One &amp; all" in drawn and "\n\n" not in drawn


@pytest.mark.full("classroom")
def test_a_formula_is_mathml_or_refused() -> None:
    from grading.site.mathml import as_mathml

    assert "<mtext>softmax</mtext>" in as_mathml(r"\operatorname{softmax}(x)", "inline")
    assert "<mtext>drop_last</mtext>" in as_mathml(r"\texttt{drop\_last}", "block")
    with pytest.raises(ValueError, match=r"does not know \\nosuchthing"):
        as_mathml(r"\nosuchthing{x}", "inline")
