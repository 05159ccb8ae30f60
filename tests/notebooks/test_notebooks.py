"""The notebooks as people run them: solved ones give the same text twice, blank ones stop at the first question."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from grading.build import build

SOURCES = sorted((Path(__file__).resolve().parents[2] / "solutions").glob("[0-9][0-9]_*.py"))
MAX_S = 60
MEMORY_USED = re.compile(r"[\d.,]+\s+of\s+[\d.,]+\s+[KM]iB\s+\(\w+\)")
pytestmark = pytest.mark.slow


def run(notebook: NotebookNode, folder: Path) -> NotebookNode:
    NotebookClient(
        notebook, timeout=MAX_S, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


def fresh(folder: Path) -> Path:
    """An empty folder of that very name: some cells show it, some say whether the file that they write was there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def texts(notebook: NotebookNode) -> dict[str, str]:
    """What a reader sees as text, cell by cell; a stream may arrive in any number of pieces.

    Left out: cells that are tagged "varies", which show times or what Python's allocator took, and such figures of a
    check's budgets.
    """
    found = {}
    for cell in notebook.cells:
        if "varies" in cell.metadata.get("tags", ()):
            continue
        outputs = cell.get("outputs", ())
        parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
        # A figure's text is its size only; the picture is not compared.
        found[cell.id] = MEMORY_USED.sub("", "".join(parts))
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_solved_notebook_says_the_same_twice_and_is_quick(source: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    first = run(build(source).solution, fresh(tmp_path / "work"))
    seconds = time.monotonic() - began
    assert seconds < MAX_S
    assert texts(first) == texts(run(build(source).solution, fresh(tmp_path / "work")))
    stderr = [output for cell in first.cells for output in cell.get("outputs", ()) if output.get("name") == "stderr"]
    assert not stderr


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_blank_notebook_stops_at_its_first_exercise_with_one_friendly_line(source: Path, tmp_path: Path) -> None:
    blank = build(source).student
    with pytest.raises(CellExecutionError):
        run(blank, tmp_path)
    failed = [cell for cell in blank.cells if any(o.output_type == "error" for o in cell.get("outputs", ()))]
    checks = [cell.id for cell in blank.cells if cell.id.endswith("-check")]
    assert [cell.id for cell in failed] == checks[:1]
    (error,) = [output for output in failed[0].outputs if output.output_type == "error"]
    assert len(error.traceback) == 1 and "not answered yet" in error.traceback[0]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_committed_notebook_is_what_the_build_makes(source: Path) -> None:
    committed = source.parents[1] / "notebooks" / f"{source.stem}.ipynb"
    assert nbformat.read(committed, 4) == build(source).student
