"""The notebooks as people run them: solved ones give the same text twice, blank ones stop at the first question."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from grading.build import build
from grading.site.kernel import run_notebook

REPO = Path(__file__).resolve().parents[2]
SOURCES = sorted((REPO / "solutions").glob("[0-9][0-9]_*.py"))
HANG_S = 600
"""For a cell. No test asks how quick a notebook is: `python -m benchmarks --only notebooks` measures it."""

MEMORY_USED = re.compile(r"[\d.,]+\s+of\s+[\d.,]+\s+[KM]iB\s+\(\w+\)")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(4 * HANG_S)]
each_notebook = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
each_in_its_lab = pytest.mark.parametrize(
    "source", [pytest.param(path, id=path.stem, marks=pytest.mark.lab(path.stem[:2])) for path in SOURCES]
)


def run_to_the_end(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The notebook as it has run, also behind cells that fail."""
    return run_notebook(notebook, folder, HANG_S, also_past_errors=True)


@functools.cache
def first_run(source: Path, folder: Path) -> NotebookNode:
    """The solved notebook as nbval has run it."""
    return run_by_nbval(build(source).solution, folder)


def run_by_nbval(solved: NotebookNode, folder: Path) -> NotebookNode:
    """The notebook as nbval has run it, in its file alone in a folder of that very name.

    Some cells show the folder, some look what is in it. nbval goes on behind a cell that fails, and names them all.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    nbformat.write(solved, folder / "solved.ipynb")
    told = folder.with_suffix(".json")
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "--nbval-kernel-name=python3"]
    command += [f"--nbval-cell-timeout={HANG_S}", "-p", "no:cacheprovider", "-p", "tests.notebooks.recorder"]
    command += ["-c", os.devnull, f"--rootdir={folder}", str(folder / "solved.ipynb")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["LABS_OUTPUTS"] = str(told)
    # Kernels that run beside one another would write the history of what was typed into one database.
    environment["IPYTHONDIR"] = str(folder.with_suffix(".ipython"))
    told.unlink(missing_ok=True)
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=2 * HANG_S)
    found = json.loads(told.read_text()) if told.exists() else {}
    if done.returncode:
        pytest.fail(done.stdout + done.stderr + shown_by_cells_that_failed(found), pytrace=False)
    for cell in solved.cells:
        if cell.cell_type == "code":
            cell.outputs = [nbformat.from_dict(output) for output in found[cell.id]]
    return solved


def shown_by_cells_that_failed(found: dict[str, list[dict]]) -> str:
    """All that they showed before their error: what a check has to say stands in its box."""
    parts = []
    for name, outputs in found.items():
        if any(output["output_type"] == "error" for output in outputs):
            parts += [f"\n--- {name} showed:", *filter(None, map(text_of, outputs))]
    return "\n".join(parts)


def text_of(output: dict) -> str:
    """Of an output what a reader sees as text."""
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def texts(notebook: NotebookNode) -> dict[str, str]:
    """What a reader sees as text, cell by cell.

    Left out: cells that are tagged "varies", which show times or what Python's allocator took, and such figures of a
    check's budgets.
    """
    found = {}
    for cell in notebook.cells:
        if "varies" in cell.metadata.get("tags", ()):
            continue
        outputs = cell.get("outputs", ())
        # A figure's text is its size only; the picture is not compared.
        found[cell.id] = MEMORY_USED.sub("", "".join(map(text_of, outputs)))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for every run of a notebook: some cells show it."""
    return tmp_path_factory.mktemp("notebooks") / "work"


@pytest.mark.full("notebooks")
@each_in_its_lab
def test_a_solved_notebook_runs(source: Path, folder: Path) -> None:
    outputs = [output for cell in first_run(source, folder).cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert not [output for output in outputs if "has no new row" in output.get("text", "")], "its feature is measured"
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert all(one.metadata["image/png"].get("alt") for one in pictures), "each says what it shows in words"
    assert all(' alt="' in one.data.get("text/html", "") for one in pictures), "also where the PNG's words are left out"


@pytest.mark.full("notebooks")
@pytest.mark.later
@each_in_its_lab
def test_a_solved_notebook_says_the_same_twice(source: Path, folder: Path) -> None:
    assert texts(first_run(source, folder)) == texts(run_by_nbval(build(source).solution, folder))


@pytest.mark.full("notebooks")
def test_a_notebook_that_fails_says_what_its_check_said(folder: Path) -> None:
    """The control, as CI sees it: the box of a wrong answer, and nothing of cells that ran."""
    answer = 'from labkit import check\n\nprint("this ran")\n\n\ndef rms(x, dim):\n    return x.sum(dim)'
    cells = [nbformat.v4.new_code_cell(source) for source in (answer, 'check("00-warm-up", rms)')]
    with pytest.raises(pytest.fail.Exception) as raised:
        run_by_nbval(nbformat.v4.new_notebook(cells=cells), folder)
    assert f"--- {cells[1].id} showed:\n✗ 00-warm-up: " in str(raised.value)
    assert cells[0].id not in str(raised.value)



@pytest.mark.full("notebooks")
@each_in_its_lab
def test_of_a_blank_notebook_nothing_but_the_checks_fails(source: Path, tmp_path: Path) -> None:
    """Every other cell runs, or says in a line what it leaves out; a check, where a student stops, fails in one."""
    blank = run_to_the_end(build(source).student, tmp_path)
    outputs = [output for cell in blank.cells for output in cell.get("outputs", ())]
    errors = {cell.id: [o for o in cell.get("outputs", ()) if o.output_type == "error"] for cell in blank.cells}
    failed = [cell_id for cell_id, found in errors.items() if found]
    assert failed == [cell.id for cell in blank.cells if cell.id.endswith("-check")]
    (first,) = errors[failed[0]]
    assert len(first.traceback) == 1 and "not answered yet" in first.traceback[0]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert source.stem[:2] == "00" or any("Left out here" in output.get("text", "") for output in outputs)


@pytest.mark.full("notebooks")
@each_notebook
def test_the_committed_notebook_is_what_the_build_makes(source: Path) -> None:
    committed = REPO / "notebooks" / f"{source.stem}.ipynb"
    assert nbformat.read(committed, 4) == build(source).student
