"""A class graded on a Dask cluster that loses a worker halfway has the grades of a class graded here."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path

import psutil
import pytest
from nbgrader.api import Gradebook

from grading.course import Course
from tests.grading.clusters import Cluster
from tests.grading.lessons import LAB, SOLUTION, grade, make_course, submit

pytestmark = pytest.mark.full("cluster")
STUDENTS = [f"student-{number}" for number in range(6)]
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("pristine") / "course"
    course = make_course(root)
    for number, student in enumerate(STUDENTS):
        submit(course, student, f"import time\ntime.sleep(0.4)\n{WRONG if number % 3 == 1 else SOLUTION}")
    return root


def graded(pristine: Path, root: Path, **how: object) -> tuple[dict, dict]:
    """The points in the gradebook and the stored results of a copy of the class, graded in this way."""
    shutil.copytree(pristine, root)
    course = Course.at(root)
    assert grade(course, LAB, STUDENTS, isolation="none", **how) == []
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        points = {
            (student, cell.name): cell.auto_score
            for student in STUDENTS
            for notebook in gradebook.find_submission(LAB, student).notebooks
            for cell in notebook.grades
        }
    return points, {path.name: _lasting(json.loads(path.read_text())) for path in results(course)}


def _lasting(result: dict) -> dict:
    """Less what differs from run to run."""
    return {name: value for name, value in result.items() if name != "usage"}


def results(course: Course) -> list[Path]:
    return sorted((course.root / ".grading" / "results" / LAB).glob("*.json"))


def test_grades_are_those_of_a_local_run_though_a_worker_is_killed_halfway(pristine, tmp_path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        # Both graders are read before the class is graded here, so that they are the same.
        workers = [cluster.add_worker(), cluster.add_worker()]
        killed_after: list[int] = []
        orphans: list[psutil.Process] = []

        def kill_one_halfway() -> None:
            course = Course.at(tmp_path / "there") if wait_until((tmp_path / "there" / "submitted").is_dir) else None
            if course and wait_until(lambda: len(results(course)) >= 2):
                killed_after.append(len(results(course)))
                orphans.extend(psutil.Process(workers[0].pid).children(recursive=True))
                workers[0].kill()

        killer = threading.Thread(target=kill_one_halfway, daemon=True)
        killer.start()
        there = graded(pristine, tmp_path / "there", workers=1, cluster=cluster.address)
        killer.join()
        assert killed_after and killed_after[0] < len(STUDENTS)
        assert workers[0].wait(10) == -9 and workers[1].poll() is None
        assert orphans and psutil.wait_procs(orphans, 30)[1] == [], "the killed worker's sandbox outlives it"
    here = graded(pristine, tmp_path / "here", workers=1)
    assert there == here
    assert {value for (_, name), value in here[0].items() if name == "00-warm-up-check"} == {0, 1}


def wait_until(true, within_s: float = 120.0) -> bool:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
