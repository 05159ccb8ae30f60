"""A disk that is full or read-only: one line that says so, nothing lost, and a rerun completes.

Uses a small file system of its own, which takes root on Linux.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.course import Course
from tests.grading.lessons import LAB, make_course, points, submit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]
SIZE_BYTES = 4 * 2**20


@pytest.fixture
def small_disk(tmp_path) -> Path:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no file system of our own here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def course(small_disk, tmp_path) -> Course:
    made = make_course(tmp_path / "course")
    submit(made, "ada")
    submit(made, "bob")
    shutil.copytree(made.root, small_disk / "course")
    return Course.at(small_disk / "course")


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    free_bytes = shutil.disk_usage(disk).free
    filler.write_bytes(b"\0" * free_bytes)
    return filler


def grade_it(course: Course) -> int:
    return main(["grade", str(course.root), "00", "--workers", "1"])


def test_a_full_disk(small_disk, course, capsys) -> None:
    filler = fill(small_disk)
    assert grade_it(course) in (1, 2)
    said = capsys.readouterr()
    assert "No space left on device" in said.out + said.err and "Traceback" not in said.out + said.err
    filler.unlink()
    assert grade_it(course) == 0
    assert [points(course, name)["00-warm-up-check"] for name in ("ada", "bob")] == [1, 1]


def test_a_disk_that_fills_up_while_grades_are_written(small_disk, course, capsys) -> None:
    assert main(["grade", str(course.root), "00", "--workers", "1", "--student", "ada"]) == 0
    before = course.autograded(LAB, "ada").read_bytes()
    filler = fill(small_disk)
    with open(filler, "r+b") as file:
        # Room for the stored result, none for nbgrader's database.
        file.truncate(os.path.getsize(filler) - 24 * 1024)
    submit_room = grade_it(course)
    said = capsys.readouterr()
    assert submit_room in (1, 2) and "Traceback" not in said.out + said.err
    assert course.autograded(LAB, "ada").read_bytes() == before
    filler.unlink()
    assert grade_it(course) == 0
    assert [points(course, name)["00-warm-up-check"] for name in ("ada", "bob")] == [1, 1]


def test_a_read_only_disk(small_disk, course, capsys) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert grade_it(course) in (1, 2)
    said = capsys.readouterr()
    assert "Read-only file system" in said.out + said.err and "Traceback" not in said.out + said.err
    assert main(["course", str(small_disk / "new")]) == 2
    assert "Read-only file system" in capsys.readouterr().err
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert grade_it(course) == 0
