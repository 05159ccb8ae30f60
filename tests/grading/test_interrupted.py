"""A run that is interrupted, or loses a process of its pool, costs nobody a grade."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import grading.executors.local as local
from grading.course import Course
from tests.grading.lessons import LAB, ROOT, SOLUTION, command, grade, make_course, points, submit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]


@pytest.fixture
def course(tmp_path) -> Course:
    return make_course(tmp_path / "a course with spaces, ünïcode")


@pytest.mark.full("kills")
def test_a_killed_process_of_the_pool_costs_nobody_a_grade(course, pool, monkeypatch) -> None:
    """One process of the pool is killed while it works; its jobs run again in a new one."""
    for name in ("ada", "bob", "eve"):
        submit(course, name, f"import time\ntime.sleep(1)\n# {name}\n{SOLUTION}")
    killed = []

    class Killer(ProcessPoolExecutor):
        def submit(self, *args, **kwargs):
            future = super().submit(*args, **kwargs)
            if not killed:
                (pid,) = list(self._processes)[:1]
                threading.Timer(4.0, lambda: os.kill(pid, 9)).start()
                killed.append(pid)
            return future

    monkeypatch.setattr(local, "ProcessPoolExecutor", Killer)
    assert grade(course, LAB, ["ada", "bob", "eve"], workers=1) == []
    assert killed and [points(course, name)["00-warm-up-check"] for name in ("ada", "bob", "eve")] == [1, 1, 1]


@pytest.mark.full("kills")
def test_an_interrupted_run_goes_on_where_it_was(course) -> None:
    """Ctrl-C while jobs run: what is finished stays, and the same command completes the rest."""
    for n in range(9):
        submit(course, f"s{n}", f"import time\ntime.sleep(0.7)\n# {n}\n{SOLUTION}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "grading", "grade", str(course.root), "00", "--workers", "1"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    results = course.root / ".grading" / "results" / LAB
    while process.poll() is None and not (results.is_dir() and any(results.glob("*.json"))):
        time.sleep(0.02)
    os.killpg(process.pid, 2)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 130
    assert "run the same command again" in output
    kept = {path.name: path.stat().st_mtime_ns for path in results.glob("*.json")}
    assert 1 <= len(kept) < 9
    done = command(course, "grading", "grade", str(course.root), "00", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert all((results / name).stat().st_mtime_ns == when for name, when in kept.items())
    assert [points(course, f"s{n}")["00-warm-up-check"] for n in range(9)] == [1] * 9
