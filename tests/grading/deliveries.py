"""A small course, notebooks handed in to it in an archive, and what `collect` leaves there."""

from __future__ import annotations

import zipfile
from pathlib import Path

import nbformat

from grading.__main__ import main
from grading.course import Course
from grading.log import Log
from tests.grading.lessons import LAB, cell_of, solved

CONFIG = "c = get_config()\n"


def book(answer: str) -> bytes:
    """The small lab with this answer, as a student saves it."""
    notebook = solved()
    cell_of(notebook, "00-warm-up").source = answer
    return nbformat.writes(notebook).encode()


def make_small_course(root: Path) -> Course:
    """A course with the small lab, not released: nothing here needs nbgrader."""
    (root / "source" / LAB).mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG)
    (root / "source" / LAB / f"{LAB}.ipynb").write_bytes(book("solved"))
    course = Course.at(root)
    course.make_key()
    return course


def make_zip(path: Path, members: dict[str, bytes], when: tuple[int, ...] = (2026, 1, 31, 12, 0, 0)) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, when), data)
    return path


def collect(course: Course, *words: str | Path) -> int:
    return main(["collect", str(course.root), "00", *map(str, words)])


def state(course: Course) -> dict[str, tuple[int, bytes]]:
    """Every file of the course but the lock, with its time of change."""
    files = [path for path in course.root.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(course.root)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def received(course: Course) -> list[dict]:
    return [entry.facts for entry in Log(course).entries() if entry.kind == "received"]
