"""The course's pages from its sources, as a folder of static HTML.

What pages are made from is laid out in build/site-source; Sphinx makes HTML of it, and its warnings are errors. The old
pages stay until the new ones are whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from grading import own_labs
from grading.build.compile import Built, build_all
from grading.errors import UserError
from grading.files import write_whole
from grading.site.api_page import api_page
from grading.site.course_pages import exercises_page, front_page, labs_page, pages_of_docs
from grading.site.executed import FOLDER as EXECUTED
from grading.site.executed import execute_missing, kept
from grading.site.lab_page import lab_page

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
OUT = ROOT / "build" / "site"
DIGEST = "made-from"
"""The file among the pages that says what they were made from."""


@dataclass(frozen=True)
class Wish:
    """What is asked for.

    quick: run no notebook; what an older version of a lab gave will do, and a lab that has never run has no outputs.
    workers: notebooks that run at a time.
    """

    out: Path = OUT
    quick: bool = False
    workers: int = 2


def make_site(wish: Wish, say: Callable[[str], None], executed: Path = EXECUTED) -> int:
    """Make the pages, unless they are there already; returns their number. Raises UserError."""
    mark = wish.out / DIGEST
    if not mark.is_file() and wish.out.exists() and (not wish.out.is_dir() or any(wish.out.iterdir())):
        raise UserError(f"{wish.out} holds something else", "name a folder that is empty or does not exist")
    labs = build_all(own_labs.sources())
    if not wish.quick:
        execute_missing(labs, wish.workers, say, executed)
    source = wish.out.with_name(f"{wish.out.name}-source")
    shutil.rmtree(source, ignore_errors=True)
    lay_out(labs, source, executed, also_older=wish.quick)
    digest = digest_of(source)
    if not (mark.is_file() and mark.read_text() == digest):
        run_sphinx(source, wish.out, say)
        write_whole(mark, digest.encode(), mode=0o644)
    return len(list(wish.out.rglob("*.html")))


def lay_out(labs: list[Built], source: Path, executed: Path, *, also_older: bool = False) -> None:
    """Write what Sphinx reads: pages, pictures, settings."""
    static = source / "_static"
    shutil.copytree(HERE / "static", static)
    shutil.copytree(HERE / "templates", source / "_templates")
    shutil.copy(HERE / "conf.py", source)
    pages = {Path("index.md"): front_page(labs), Path("exercises.md"): exercises_page(labs), Path("api.md"): api_page()}
    pages[Path("labs", "index.md")] = labs_page(labs)
    for page, text in {**pages, **pages_of_docs()}.items():
        write_whole(source / page, text.encode(), mode=0o644)
    for lab in labs:
        notebook = lab_page(lab, kept(lab, executed, also_older=also_older), static / "figures")
        write_whole(source / "labs" / f"{lab.name}.ipynb", nbformat.writes(notebook).encode(), mode=0o644)


def run_sphinx(source: Path, out: Path, say: Callable[[str], None]) -> None:
    """HTML of what is laid out, whole or not at all. Raises UserError after Sphinx has said what is wrong."""
    work = out.with_name(f"{out.name}-new")
    shutil.rmtree(work, ignore_errors=True)
    new, trees = work / "html", work / "trees"
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "2", "-d", str(trees)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            [*command, str(source), str(new)], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            for line in (done.stderr or done.stdout).strip().split("\n"):
                say(line)
            raise UserError("the pages are not made", "mend what stands above, and run the same command again")
        shutil.rmtree(out, ignore_errors=True)
        new.replace(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def digest_of(source: Path) -> str:
    """Of all that is laid out, and of what makes HTML of it."""
    paths = sorted(path for path in [*source.rglob("*"), HERE / "mathml.py"] if path.is_file())
    whole = hashlib.sha256()
    for path in paths:
        whole.update(f"{path.parent.name}/{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
