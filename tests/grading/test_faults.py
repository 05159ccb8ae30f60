"""Processes of the grader killed at random moments: the run or a rerun completes, with the grades of a quiet run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from grading.course import Course
from grading.log import Log
from grading.results import read_ungraded
from tests.grading.lessons import LAB, SOLUTION, make_course, submit
from tests.grading.runs import REPOSITORY, WRONG, alive, grades, wait_until

pytestmark = pytest.mark.full("kills")
N_STUDENTS = 20
KILLS = ("grader", "pool", "forker", "grader", "forker", "pool", "grader")
SEED = 20260302
SLOW = "import time\ntime.sleep(0.35)\n"


class Ended(Exception):
    """The run was over before the next kill was due."""


def start(course: Course, folder: Path) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(folder)}
    words = ["grade", str(course.root), "00", "--workers", "2", "--isolation", "none"]
    with open(folder / "said", "a") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "grading", *words],
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def children(pid: int) -> list[int]:
    try:
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def commanded(pid: int, word: str) -> bool:
    try:
        return word in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def pool_of(process: subprocess.Popen) -> list[int]:
    servers = [pid for pid in children(process.pid) if commanded(pid, "multiprocessing.forkserver")]
    return [pid for server in servers for pid in children(server)]


def forkers_of(process: subprocess.Popen) -> list[int]:
    forked = [child for pid in pool_of(process) for child in children(pid)]
    return [pid for pid in forked if commanded(pid, "grading.worker.forkserver")]


def n_results(course: Course) -> int:
    return len(list((course.root / ".grading" / "results" / LAB).glob("*.json")))


def kill_one(process: subprocess.Popen, what: str, course: Course, after: int, said: Path) -> None:
    """Kill one process of that kind when so many more results are there. Raises Ended with what the run `said`."""
    wanted = n_results(course) + after
    chosen: list[int] = []

    def is_due() -> bool:
        if process.poll() is not None:
            raise Ended(f"before the next {what} was killed: {said.read_text()}")
        find = {"grader": lambda process: [process.pid], "pool": pool_of, "forker": forkers_of}[what]
        chosen[:] = find(process)
        return bool(chosen) and n_results(course) >= wanted

    wait_until(is_due)
    os.kill(chosen[0], signal.SIGKILL)


@pytest.fixture
def folder() -> Iterator[Path]:
    """For temporary files: the path of pytest's own is too long for a socket."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def test_kills_at_random_moments_change_no_grade(tmp_path, folder) -> None:
    drawn = random.Random(SEED)
    course = make_course(tmp_path / "course")
    expected = {}
    for n in range(N_STUDENTS):
        right = drawn.random() < 0.6
        submit(course, f"s{n:02}", f"{SLOW}# {n}\n{SOLUTION if right else WRONG}")
        expected[f"s{n:02}"] = float(right)
    process = start(course, folder)
    for what in KILLS:
        kill_one(process, what, course, drawn.randint(0, 2), folder / "said")
        if what == "grader":
            assert process.wait(10) == -signal.SIGKILL
            wait_until(lambda: not alive(folder))
            process = start(course, folder)
    assert process.wait(120) == 0, (folder / "said").read_text()
    wait_until(lambda: not alive(folder))
    assert [path.name for path in folder.iterdir()] == ["said"], (folder / "said").read_text()
    found = grades(course)
    assert {student: found[student, "00-warm-up-check"] for student in expected} == expected
    assert {found[student, "00-plain"] for student in expected} == {2.0}
    assert read_ungraded(course, LAB) == {}
    assert list((course.root / ".grading" / "drafts" / LAB).iterdir()) == []
    assert Log(course).verify() == []
    logged = {entry.facts["student"] for entry in Log(course).entries() if entry.kind == "graded"}
    assert logged == set(expected)


def test_a_temporary_folder_whose_path_no_socket_fits_in_is_refused(tmp_path, folder) -> None:
    course = make_course(tmp_path / "course")
    submit(course, "ada", SOLUTION)
    deep = folder / ("long" * 20)
    deep.mkdir()
    process = start(course, deep)
    assert process.wait(60) == 2
    said = (deep / "said").read_text()
    assert (
        f"files, {deep}, is {len(str(deep)) - 75} bytes too long for a socket in it: set TMPDIR to a folder with a"
        in said
    )
    wait_until(lambda: not alive(deep))
    assert [path.name for path in deep.iterdir()] == ["said"]


def test_a_program_killed_before_its_pool_stands_leaves_nothing(tmp_path, folder) -> None:
    course = make_course(tmp_path / "course")
    submit(course, "ada", SOLUTION)
    process = start(course, folder)
    wait_until(lambda: any(path.name.startswith("grading-tree-") for path in folder.iterdir()))
    assert not forkers_of(process)
    process.kill()
    assert process.wait(10) == -signal.SIGKILL
    wait_until(lambda: not alive(folder))
    assert [path.name for path in folder.iterdir()] == ["said"]
