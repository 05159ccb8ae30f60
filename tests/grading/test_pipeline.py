"""The stream of jobs: few in flight, trouble tried again alone, stopped in good order; the same grades every way."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook

import grading.pipeline.lab as pipeline_lab
import grading.pipeline.stream as streams
import grading.submissions as submissions
from grading.__main__ import main
from grading.course import Course
from grading.errors import UserError
from grading.isolation import Tier
from grading.isolation.sandbox import InfrastructureFault, LostUnderStudent
from grading.isolation.tiers import NONE
from grading.log import Log
from grading.nbgrader_api import open_api
from grading.pipeline.failure import ungraded_by
from grading.pipeline.stream import JobStream, run_all
from grading.results import read_result
from grading.submissions import prepare
from grading.supervisor.own_time import TookTooLong
from grading.supervisor.result import CellResult, ExerciseResult, SubmissionResult
from labkit.check.verdict import Verdict
from tests.grading.lessons import LAB, SOLUTION, grade, make_course, submit

REPOSITORY = Path(__file__).resolve().parents[2]
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"
WORKERS = 2


def work(number: int) -> SimpleNamespace:
    return SimpleNamespace(job=number)


class Recorder:
    """What a stream was given and what it told."""

    def __init__(self, monkeypatch, run: Callable[[int], object], workers: int = WORKERS) -> None:
        self.told: dict[int, object] = {}
        self.n_opened = 0
        self.most_ahead = 0
        self.stop = False
        monkeypatch.setattr(streams, "run_in_pool", lambda job, _tier, _tree: run(job))
        monkeypatch.setattr(streams, "open_executor", self.open)
        monkeypatch.setattr(streams, "TICK_S", 0.01)
        self.stream = JobStream(workers, None, NONE.name, NONE, self.tell, lambda: None, lambda: self.stop)

    @contextmanager
    def open(self, workers: int, _cluster: str | None, _isolation: str) -> Iterator[Executor]:
        self.n_opened += 1
        with ThreadPoolExecutor(workers) as executor:
            yield executor

    def tell(self, item: SimpleNamespace, outcome: object) -> None:
        assert item.job not in self.told
        self.told[item.job] = outcome

    def feed(self, n: int) -> Iterator[SimpleNamespace]:
        for number in range(n):
            self.most_ahead = max(self.most_ahead, number - len(self.told))
            yield work(number)


def test_only_a_few_jobs_are_ever_in_flight(monkeypatch) -> None:
    seen = Recorder(monkeypatch, lambda job: {"n": job})
    run_all(seen.stream, seen.feed(500))
    assert seen.told == {n: {"n": n} for n in range(500)}
    assert seen.most_ahead <= seen.stream.window <= 3 * WORKERS
    assert seen.n_opened == 1


def test_nothing_to_run_opens_no_executor(monkeypatch) -> None:
    seen = Recorder(monkeypatch, lambda job: {"n": job})
    run_all(seen.stream, iter(()))
    assert seen.n_opened == 0


def test_what_met_trouble_is_tried_again_alone(monkeypatch) -> None:
    tries = Counter()

    def run(job: int) -> dict:
        tries[job] += 1
        if job == 3 and tries[job] == 1:
            raise InfrastructureFault("once")
        if job == 5:
            raise MemoryError
        if job == 7:
            raise BrokenExecutor
        return {"n": job}

    seen = Recorder(monkeypatch, run)
    run_all(seen.stream, seen.feed(20))
    failed = {job: outcome for job, outcome in seen.told.items() if not isinstance(outcome, dict)}
    assert sorted(seen.told) == list(range(20))
    assert sorted(failed) == [5, 7] and tries[5] == tries[7] == 1 + streams.ALONE
    assert ungraded_by("a", failed[5]).outcome == "infrastructure"
    assert ungraded_by("a", failed[7]).outcome == "suspected"
    assert ungraded_by("a", LostUnderStudent("x")).outcome == "suspected"


def test_what_took_the_supervisor_too_long_is_not_tried_again(monkeypatch) -> None:
    tries = Counter()

    def run(job: int) -> dict:
        tries[job] += 1
        if job == 3:
            raise MemoryError if tries[job] == 1 else TookTooLong("too long")
        if job == 5:
            raise TookTooLong("too long")
        return {"n": job}

    seen = Recorder(monkeypatch, run)
    run_all(seen.stream, seen.feed(20))
    assert sorted(seen.told) == list(range(20))
    assert (tries[3], tries[5]) == (2, 1)
    assert {ungraded_by("a", seen.told[job]).outcome for job in (3, 5)} == {"suspected"}


def test_what_others_may_have_slowed_down_runs_again_alone_before_it_counts(monkeypatch) -> None:
    tries, running, beside = Counter(), Counter(), []

    def run(job: int) -> dict:
        tries[job] += 1
        running[job] = 1
        if tries[job] == 2:
            beside.append(running.total() - 1)
        running[job] = 0
        # The fifth is in time once it has the machine to itself, the seventh never is.
        return {"n": job, "late": job == 7 or (job == 5 and tries[job] == 1)}

    seen = Recorder(monkeypatch, run)
    late = replace(seen.stream, owes_to_others=lambda result: result["late"])
    run_all(late, seen.feed(20))
    assert seen.told == {n: {"n": n, "late": n == 7} for n in range(20)}
    assert tries == {n: 2 if n in (5, 7) else 1 for n in range(20)} and beside == [0, 0]
    # Nobody ran beside it in the first place.
    tries.clear()
    seen.told.clear()
    run_all(replace(late, workers=1), seen.feed(9))
    assert set(tries.values()) == {1}


@pytest.mark.parametrize(
    ("outcome", "skipped", "waited_s", "again"),
    [
        ("limit", False, 3.0, True),
        ("suspected", False, 3.0, True),
        # A cell that an answer needs.
        ("failed", True, 3.0, True),
        ("failed", False, 3.0, False),
        ("passed", False, 3.0, False),
        # It slept or computed: nobody was in its way.
        ("limit", False, 0.2, False),
        # The kernel does not say.
        ("limit", False, None, True),
    ],
)
def test_who_may_owe_a_result_to_others(outcome: str, skipped: bool, waited_s: float | None, again: bool) -> None:
    found = ExerciseResult(Verdict("00-warm-up", outcome, 0.0, "", (), None), None)
    cells = {"a": CellResult(not skipped, None, "", skipped=skipped)}
    usage = {"wall_s": 20.0, "cpu_s": 9.0} | ({} if waited_s is None else {"waited_s": waited_s})
    result = SubmissionResult("key", "00", "ada", {"00-warm-up": found}, cells, (), usage=usage)
    assert result.owes_to_others == again


def test_an_executor_that_breaks_while_it_is_idle_costs_nobody_a_try(monkeypatch) -> None:
    tries = Counter()

    def run(job: int) -> dict:
        tries[job] += 1
        if tries[job] <= 2:
            raise MemoryError
        return {"n": job}

    class Fleeting:
        """Takes two jobs, if they are to run alone, and no more."""

        def __init__(self, executor: Executor, workers: int) -> None:
            self.executor, self.left = executor, 2 if workers == 1 else 1000

        def submit(self, *call: object) -> Future:
            self.left -= 1
            if self.left < 0:
                raise BrokenExecutor
            return self.executor.submit(*call)

    seen = Recorder(monkeypatch, run)
    opened = seen.open

    @contextmanager
    def fleeting(workers: int, *rest: object) -> Iterator[Fleeting]:
        with opened(workers, *rest) as executor:
            yield Fleeting(executor, workers)

    monkeypatch.setattr(streams, "open_executor", fleeting)
    run_all(seen.stream, seen.feed(3))
    assert seen.told == {n: {"n": n} for n in range(3)}
    assert set(tries.values()) == {1 + streams.ALONE}


def test_a_stopped_stream_finishes_what_runs_and_begins_nothing(monkeypatch) -> None:
    def run(job: int) -> dict:
        seen.stop = job == 4 or seen.stop
        return {"n": job}

    seen = Recorder(monkeypatch, run)
    run_all(seen.stream, seen.feed(200))
    assert 4 in seen.told and len(seen.told) <= 4 + 1 + seen.stream.window


# --- the real thing


@pytest.fixture(scope="module")
def course(in_process, tmp_path_factory) -> Course:
    course = make_course(tmp_path_factory.mktemp("small") / "course")
    for n in range(6):
        submit(course, f"s{n}", f"# {n}\n{SOLUTION if n % 2 else WRONG}")
    return course


def grades(course: Course) -> dict[tuple[str, str], float | None]:
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        return {
            (sent.student_id, row.name): row.auto_score
            for sent in gradebook.assignment_submissions(LAB)
            for notebook in sent.notebooks
            for row in notebook.grades
        }


def forget(course: Course) -> None:
    """Everything that grading left, but for the key and the released lab."""
    for name in ("autograded", ".grading/results", ".grading/drafts"):
        subprocess.run(["rm", "-rf", str(course.root / name)], check=True)
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        for sent in gradebook.assignment_submissions(LAB):
            gradebook.remove_submission(LAB, sent.student_id)


@pytest.mark.full("determinism")
def test_the_grades_are_the_same_for_any_number_of_workers_in_any_order(course, pool) -> None:
    students = course.students(LAB)
    found = []
    for workers in (1, 2, 4):
        forget(course)
        random.Random(workers).shuffle(students)
        assert grade(course, LAB, students, workers=workers) == []
        found.append(grades(course))
    assert found[0] == found[1] == found[2]
    assert {student: points for (student, cell), points in found[0].items() if cell == "00-warm-up-check"} == {
        f"s{n}": n % 2 for n in range(6)
    }


@pytest.mark.slow
def test_a_regrade_says_what_changed(in_process, tmp_path, capsys) -> None:
    course = make_course(tmp_path / "course")
    for name in ("ada", "bob", "eve"):
        submit(course, name)

    def again() -> str:
        assert main(["grade", str(course.root), "00", "--workers", "1", "--isolation", "none"]) == 0
        return capsys.readouterr().out

    first = again()
    assert "3 submissions graded in" in first and "again" not in first
    assert "isolation: NONE" in first
    assert "3 of 3 unchanged: the grades stay as they are" in again()
    submit(course, "bob", WRONG)
    (course.submitted(LAB, "eve").parent / "timestamp.txt").write_text("2026-01-01 00:00:00 UTC")
    said = again()
    assert "2 of 3 are graded again: submission changed (1), time of submission changed (1)" in said
    assert "1 of 3 unchanged" in said
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate="2026-02-01 00:00:00 UTC")
    assert "3 of 3 are graded again: due date changed (3)" in again()
    logged = [entry for entry in Log(course).entries() if entry.kind == "graded"]
    assert {entry.facts["student"]: entry.facts["changed"] for entry in logged[3:5]} == {
        "bob": ["submission"],
        "eve": ["time of submission"],
    }
    assert Log(course).verify() == []


def test_a_result_made_without_isolation_counts_only_where_none_is_asked_for(tmp_path) -> None:
    plain = {"key": "k", "lab": LAB, "student": "a", "exercises": {}, "cells": {}, "notes": []}
    for isolation, may_be_none, counts in (("none", True, True), ("none", False, False), ("kernel", False, True)):
        path = tmp_path / "result.json"
        path.write_text(json.dumps({**plain, "isolation": isolation}))
        assert (read_result(path, may_be_none) is not None) == counts


@pytest.mark.slow
def test_a_fault_that_every_submission_meets_ends_the_run_with_its_reason(course, monkeypatch) -> None:
    def broken(_job) -> dict:
        raise InfrastructureFault("the sandbox is gone")

    Recorder(monkeypatch, broken)
    forget(course)
    for n in range(6, 12):
        submit(course, f"s{n}")
    expected = f"{pipeline_lab.MANY} submissions in a row could not be graded, .*the sandbox is gone: fix that and"
    with pytest.raises(UserError, match=expected):
        grade(course, LAB, course.students(LAB), workers=2)
    monkeypatch.undo()
    assert grade(course, LAB, course.students(LAB), workers=2) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "error", "reason"),
    [
        (
            "pipeline.lab.archive_submission",
            PermissionError(errno.EACCES, "Permission denied"),
            "PermissionError: .*denied",
        ),
        ("submissions.read_submission", OSError(errno.EMFILE, "Too many files"), "OSError: .*Too many files"),
        ("pipeline.lab.read_result", PermissionError(errno.EACCES, "Permission denied"), "PermissionError: .*denied"),
    ],
)
def test_a_fault_of_ours_before_a_job_is_ours_and_not_the_students(course, monkeypatch, place, error, reason) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise error

    forget(course)
    with monkeypatch.context() as patch:
        patch.setattr(f"grading.{place}", fail)
        ungraded = grade(course, LAB, ["s0", "s1"], workers=1, isolation="none")
    assert [(item.student, item.outcome) for item in ungraded] == [("s0", "infrastructure"), ("s1", "infrastructure")]
    assert all(re.match(reason, item.reason) for item in ungraded)
    assert grade(course, LAB, ["s0", "s1"], workers=1, isolation="none") == []


@pytest.mark.slow
def test_what_of_a_notebook_trips_the_merging_is_the_students_alone(course, monkeypatch) -> None:
    forget(course)
    merge = submissions.merge

    def trip(template, submission):
        if "# 0\n" in submission.cells[1].source:
            raise RecursionError
        return merge(template, submission)

    with monkeypatch.context() as patch:
        patch.setattr(submissions, "merge", trip)
        (only,) = grade(course, LAB, ["s0", "s1"], workers=1, isolation="none")
    assert (only.student, only.outcome) == ("s0", "unreadable")
    assert only.reason == "it cannot be taken apart (RecursionError): look at the file"


@pytest.mark.slow
def test_nbgraders_own_command_waits_its_turn_and_isolates_as_configured(course, monkeypatch) -> None:
    submit(course, "alone", "# alone\n" + SOLUTION)
    with course.locked():
        assert "another run is grading this course" in open_api(course).autograde(LAB, "alone")["log"]
    assert not course.autograded(LAB, "alone").exists()
    asked = []

    def select_tier(isolation: str) -> Tier:
        asked.append(isolation)
        return NONE

    monkeypatch.setattr("grading.supervisor.run.select_tier", select_tier)
    text = course.config.read_text()
    course.config.write_text(text + "\nc.Supervise.isolation = 'kernel'\n")
    assert open_api(course).autograde(LAB, "alone")["success"]
    course.config.write_text(text)
    assert asked == ["kernel"]
    key = prepare(course, LAB, LAB, "alone").job.key
    assert read_result(course.result(LAB, key)).isolation == "none"


@pytest.mark.full("kills")
def test_a_second_ctrl_c_stops_at_once_and_leaves_nothing_alive(course, tmp_path) -> None:
    for n in range(12):
        submit(course, f"s{n}", f"import time\ntime.sleep(25)\n# {n}\n{SOLUTION}")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path)}
    words = ["grade", str(course.root), "00", "--workers", "1", "--isolation", "none"]
    with open(tmp_path / "said", "w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "grading", *words], env=environment, stdout=said, start_new_session=True
        )
    wait_until(lambda: any("grading.worker.forkserver" in command for command in alive(tmp_path)))
    os.killpg(process.pid, signal.SIGINT)
    wait_until(lambda: "Ctrl-C again stops at once" in (tmp_path / "said").read_text())
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(5) == 130
    wait_until(lambda: not alive(tmp_path))
    assert list(tmp_path.glob("grading-*")) == []


def alive(folder: Path) -> list[str]:
    """The command lines of running programs that work in a folder of ours."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            folder_of = (path / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command or f"TMPDIR={folder}\0" in folder_of:
            found.append(command)
    return found


def wait_until(is_so: Callable[[], bool], within_s: float = 60.0) -> None:
    ends_at = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < ends_at, "it never came to be"
        time.sleep(0.02)
