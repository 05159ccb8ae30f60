"""Run a grading command on a course and note from outside when each submission was done and what its processes took.

The times are those of the files that the command writes. What came out as grades is read by `full_marks`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from grading.course import Course

REPO = Path(__file__).resolve().parents[1]
EVERY_S = 0.25
MiB = 2**20


@dataclass(frozen=True)
class Sample:
    """The command's own process and the pool's: CPU time so far, and the most memory one of each has held."""

    at_s: float
    cpu_s: float
    writer_bytes: int
    pool_bytes: int


@dataclass(frozen=True)
class Timed:
    """A command's run, in seconds from its start. done_s: when each submission had its result, in order; own_s: what
    each student's took by itself, as our grader says, and own_cpu_s its processes' CPU time; empty for stock.

    Ours writes the last few grades when the pool has been closed, which counts as part of the end.
    """

    n: int
    at_a_time: int
    total_s: float
    done_s: tuple[float, ...]
    samples: tuple[Sample, ...]
    own_s: dict[str, float]
    own_cpu_s: dict[str, float]

    @property
    def warm_s(self) -> float:
        """When as many submissions were done as are graded at a time: until then something was starting."""
        return self.done_s[self.at_a_time - 1]

    @property
    def seconds_each(self) -> float:
        """A submission's share of the time after the start-up, several at a time as they were."""
        return (self.done_s[-1] - self.warm_s) / (self.n - self.at_a_time)

    @property
    def start_and_end_s(self) -> float:
        """What a run takes however many submissions it has."""
        return self.total_s - self.seconds_each * self.n

    @property
    def supervisor_cpu_s(self) -> float:
        """CPU time of the writer and the judging processes for one submission, students' programs left out."""
        after = [sample for sample in self.samples if self.warm_s <= sample.at_s <= self.done_s[-1]]
        if len(after) < 2:
            raise RuntimeError("the run was too short to see what the supervisor took")
        # Between two samples the submissions are those of the time between them.
        return (after[-1].cpu_s - after[0].cpu_s) / (after[-1].at_s - after[0].at_s) * self.seconds_each


def run_stock(course: Course, lab: str) -> Timed:
    """`nbgrader autograde`, as anybody would call it. Raises RuntimeError where it leaves somebody out."""
    return _run([sys.executable, "-m", "nbgrader", "autograde", lab], course, lab, 1, course.root)


def run_ours(course: Course, lab: str, tier: str, workers: int) -> Timed:
    """`python -m grading grade`. Raises RuntimeError where it leaves somebody out."""
    words = ["grade", str(course.root), lab, "--workers", str(workers), "--isolation", tier]
    return _run([sys.executable, "-m", "grading", *words], course, lab, workers, REPO)


def _run(command: list[str], course: Course, lab: str, at_a_time: int, cwd: Path) -> Timed:
    students, output = course.students(lab), course.root / "output.txt"
    if len(students) <= at_a_time:
        raise RuntimeError(f"{len(students)} submissions, {at_a_time} at a time: nothing is left after the start-up")
    samples: list[Sample] = []
    began_at, began = time.time(), time.monotonic()
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )
        sampler = threading.Thread(target=_sample, args=(process.pid, began, samples), daemon=True)
        sampler.start()
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    total_s = time.monotonic() - began
    sampler.join()
    written = [course.autograded(lab, student) for student in students]
    n_missing = sum(not path.exists() for path in written)
    if code or n_missing:
        tail = output.read_text(errors="replace")[-2000:]
        raise RuntimeError(f"exit code {code}, {n_missing} of {len(written)} without a grade: {tail}")
    results = list((course.root / ".grading" / "results" / lab).glob("*.json"))
    done_s = sorted(path.stat().st_mtime - began_at for path in results or written)
    stored = [json.loads(path.read_text()) for path in results]
    own_s, own_cpu_s = ({one["student"]: one["usage"][name] for one in stored} for name in ("wall_s", "cpu_s"))
    return Timed(len(students), at_a_time, total_s, tuple(done_s), tuple(samples), own_s, own_cpu_s)


def environment() -> dict[str, str]:
    """This process's own, with this interpreter's programs first, and as many threads as libraries choose."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    ours = {"PATH": path, "PYTHONPATH": str(REPO), "JUPYTER_PREFER_ENV_PATH": "1"}
    return {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")} | ours


def _sample(pid: int, began: float, samples: list[Sample]) -> None:
    """Until the process ends. Its children are the pool's; what they start in turn is not looked at."""
    cpu_s: dict[int, float] = {}
    writer_bytes = pool_bytes = 0
    # Once a process has ended there is nothing to read of it.
    with contextlib.suppress(psutil.NoSuchProcess, OSError):
        writer = psutil.Process(pid)
        while writer.status() != psutil.STATUS_ZOMBIE:
            # The pool's processes are forks of one that has loaded what they need.
            for process in [writer, *(child for loader in writer.children() for child in [loader, *loader.children()])]:
                with contextlib.suppress(psutil.NoSuchProcess, OSError, KeyError):
                    used = process.cpu_times()
                    cpu_s[process.pid] = used.user + used.system
                    peak_bytes = _peak_bytes(process.pid)
                    if process.pid == pid:
                        writer_bytes = peak_bytes
                    else:
                        pool_bytes = max(pool_bytes, peak_bytes)
            samples.append(Sample(time.monotonic() - began, sum(cpu_s.values()), writer_bytes, pool_bytes))
            time.sleep(EVERY_S)


def _peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0])


def full_marks(course: Course, lab: str, exercises: Sequence[str]) -> dict[str, set[str]]:
    """The exercises that each student has all points for, from the gradebook."""
    question = """
        select submitted_assignment.student_id, base_cell.name
        from grade join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        join base_cell on grade.cell_id = base_cell.id join grade_cells on grade_cells.id = base_cell.id
        where grade.auto_score = grade_cells.max_score
    """
    checks = {f"{exercise}-check": exercise for exercise in exercises}
    found: dict[str, set[str]] = {student: set() for student in course.students(lab)}
    with contextlib.closing(sqlite3.connect(course.root / "gradebook.db")) as database:
        for student, cell in database.execute(question):
            if cell in checks:
                found[student].add(checks[cell])
    return found
