"""A class through the pipeline: the same grades every way, faults told whose they are, stopped at once when asked."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
import subprocess
import sys

import pytest
from nbgrader.api import Gradebook

import grading.pipeline.lab as pipeline_lab
import grading.submissions as submissions
from grading.__main__ import main
from grading.course import Course
from grading.errors import UserError
from grading.isolation import Tier
from grading.isolation.faults import InfrastructureFault
from grading.isolation.tiers import NONE
from grading.log import Log
from grading.nbgrader_api import open_api
from grading.results import read_result
from grading.submissions import prepare
from tests.grading.lessons import LAB, SOLUTION, grade, make_course, submit
from tests.grading.recorded_stream import Recorder
from tests.grading.runs import REPOSITORY, WRONG, alive, grades, wait_until


@pytest.fixture(scope="module")
def course(in_process, tmp_path_factory) -> Course:
    course = make_course(tmp_path_factory.mktemp("small") / "course")
    for n in range(6):
        submit(course, f"s{n}", f"# {n}\n{SOLUTION if n % 2 else WRONG}")
    return course


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
        path = tmp_path / "k.json"
        path.write_text(json.dumps({**plain, "isolation": isolation}))
        assert (read_result(path, may_be_none) is not None) == counts


def test_a_result_under_the_key_of_another_one_does_not_count(tmp_path) -> None:
    (tmp_path / "other.json").write_text(
        json.dumps({"key": "k", "lab": LAB, "student": "a", "exercises": {}, "cells": {}, "notes": []})
    )
    assert read_result(tmp_path / "other.json") is None


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
