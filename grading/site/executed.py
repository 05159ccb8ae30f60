"""Solved notebooks as they have run, kept by what they were made from: the notebook and all of labkit.

Running all labs takes a quarter of an hour, making pages from what was kept takes a minute. What tests have run is kept
here as well. Nothing here looks at an output.
"""

from __future__ import annotations

import concurrent.futures
import copy
import functools
import hashlib
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from grading.build.compile import Built
from grading.build.notebook import to_json
from grading.errors import UserError
from grading.files import write_whole
from grading.site.kernel import run_notebook

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "executed"
CELL_S = 600
"""For a cell that hangs; the longest takes a few seconds."""


def key_of(solved: NotebookNode) -> str:
    """What the outputs of a solved notebook depend on, as a text of 16 digits: its cells and labkit."""
    return hashlib.sha256(f"{to_json(solved)}{_labkit()}".encode()).hexdigest()[:16]


@functools.cache
def _labkit() -> str:
    paths = sorted(path for path in (ROOT / "labkit").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    digests = [f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in paths]
    return "\n".join(digests)


def keep(lab: Built, executed: NotebookNode, folder: Path = FOLDER) -> Path:
    """Keep the notebook as it has run; what was kept of the same lab before goes."""
    path = folder / f"{lab.name}.{key_of(lab.solution)}.ipynb"
    write_whole(path, nbformat.writes(executed).encode(), mode=0o644)
    for old in folder.glob(f"{lab.name}.*.ipynb"):
        if old != path:
            old.unlink(missing_ok=True)
    return path


def kept(lab: Built, folder: Path = FOLDER, *, also_older: bool = False) -> NotebookNode | None:
    """The lab's notebook as it has run; None where it has not, or has changed since, unless `also_older`."""
    fresh = folder / f"{lab.name}.{key_of(lab.solution)}.ipynb"
    older = sorted(folder.glob(f"{lab.name}.*.ipynb")) if also_older else []
    for path in (fresh, *older):
        if path.is_file():
            return nbformat.read(path, 4)
    return None


def execute(solved: NotebookNode) -> NotebookNode:
    """The notebook as it has run, in an empty folder of its own. Raises UserError where a cell fails."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        try:
            ran = run_notebook(solved, work, CELL_S)
        except CellExecutionError as error:
            raise UserError(f"a cell of {solved.cells[0].source.splitlines()[0]} fails", str(error)) from error
        return without_places(ran, work)


def without_places(notebook: NotebookNode, work: Path) -> NotebookNode:
    """The notebook, which has run in the folder `work`, with plain names for folders of this machine."""
    text = nbformat.writes(notebook)
    for folder, name in {str(work): "work", sys.prefix: ".venv", str(ROOT): "labs"}.items():
        text = text.replace(json.dumps(folder)[1:-1], name)
    return nbformat.reads(text, 4)


def execute_and_keep(lab: Built, folder: Path = FOLDER) -> Path:
    """Run the lab's solved notebook, and keep it."""
    return keep(lab, execute(copy.deepcopy(lab.solution)), folder)


def execute_missing(labs: Sequence[Built], workers: int, say: Callable[[str], None], folder: Path = FOLDER) -> None:
    """Run and keep every lab that is not kept yet, so many at a time. Raises UserError where a cell fails."""
    missing = [lab for lab in labs if kept(lab, folder) is None]
    if not missing:
        return
    say(f"site: running {len(missing)} of {len(labs)} solved notebooks")
    # Never a plain fork: a kernel is started from it, and threads may be running here.
    spawning = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=spawning) as pool:
        running = {pool.submit(execute_and_keep, lab, folder): lab for lab in missing}
        try:
            for done in concurrent.futures.as_completed(running):
                done.result()
                say(f"site: {running[done].name} has run")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
