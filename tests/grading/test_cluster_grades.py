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

import grading.pipeline.stream as streams
from grading.course import Course
from grading.results import read_ungraded
from grading.submissions import prepare
from tests.grading import forger
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


def test_a_worker_has_no_say_in_any_grade_but_the_one_that_it_was_asked_for(tmp_path, monkeypatch) -> None:
    course = make_course(tmp_path / "course")
    submit(course, "ada")
    submit(course, "zoe", "# zoe\n" + SOLUTION)
    keys = {student: prepare(course, LAB, LAB, student).job.key for student in ("ada", "zoe")}
    forged = {
        # In place of a classmate: one who is graded before, and one who is graded after.
        "mallory-1": {"student": "ada", "key": keys["ada"]},
        "mallory-2": {"student": "zoe", "key": keys["zoe"]},
        "mallory-3": {"key": keys["zoe"]},
        "mallory-4": {"key": "../../../../stolen"},
        "mallory-5": {"lab": "../../.."},
        "mallory-6": {"exercises": {"00-warm-up": "full marks"}},
        "mallory-7": {"isolation": "kernel\ud800"},
        "mallory-8": 7,
        "mallory-9": {},
        "nancy": {"exercises": {}},
    }
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    for student in forged:
        submit(course, student, f"# {student}\n{WRONG}")
    monkeypatch.setattr(streams, "run_on_host", forger.run_and_forge)
    # It is a fault like any other: so many in a row would end the run.
    monkeypatch.setattr("grading.pipeline.lab.MANY", 100)
    with Cluster(tmp_path / "cluster", **{forger.FILE: str(tmp_path / "forged.json")}) as cluster:
        cluster.add_worker()
        students = course.students(LAB)
        ungraded = grade(course, LAB, students, workers=1, isolation="none", cluster=cluster.address)
    assert {item.student: item.outcome for item in ungraded} == dict.fromkeys(forged, "infrastructure")
    reasons = {student: item["reason"] for student, item in read_ungraded(course, LAB).items()}
    for n in range(1, 6):
        assert "the result of another submission" in reasons[f"mallory-{n}"]
    for n in (6, 8, 9):
        assert "what came back is no result" in reasons[f"mallory-{n}"]
    assert {path.stem for path in results(course)} >= set(keys.values())
    assert not list(tmp_path.rglob("stolen*"))
    for student, key in keys.items():
        stored = json.loads(course.result(LAB, key).read_text())
        assert stored["student"] == student and stored["exercises"]["00-warm-up"]["hidden"]["score"] == 1
        with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
            (notebook,) = gradebook.find_submission(LAB, student).notebooks
            assert next(cell.auto_score for cell in notebook.grades if cell.name == "00-warm-up-check") == 1
