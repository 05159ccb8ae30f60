"""The command `regrade`: the answers run again, both grades are in the log, and none falls without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

import grading.pipeline.regrade as regrades
from grading.__main__ import main
from grading.course import Course
from grading.isolation.faults import InfrastructureFault
from grading.log import Log
from grading.report.gather import gather_record
from tests.grading.lessons import LAB, SOLUTION, grade, make_course, submit, written_key

pytestmark = pytest.mark.usefixtures("in_process")
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """ada's answer is right, and a person has given her 1.5 points for the question."""
    course = make_course(tmp_path / "course")
    submit(course, "ada")
    assert grade(course, LAB, ["ada"], workers=1, isolation="none") == []
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        found = gradebook.find_grade("00-open", LAB, LAB, "ada")
        found.manual_score, found.needs_manual_grade = 1.5, False
        gradebook.db.commit()
    return course


def regrade(course: Course, *words: str, reason: str = "the tolerance was too tight") -> int:
    return main(["regrade", str(course.root), "00", "ada", "--reason", reason, "--isolation", "none", *words])


def score(course: Course) -> float:
    (handin,) = gather_record(course).handins
    return handin.score


def last(course: Course, kind: str) -> dict:
    return [entry.facts for entry in Log(course).entries() if entry.kind == kind][-1]


def audit(course: Course, capsys) -> tuple[int, str]:
    capsys.readouterr()
    return main(["audit", str(course.root), "--student", "ada"]), capsys.readouterr().out


@pytest.mark.full("classroom")
def test_the_same_submission_runs_again_and_both_grades_are_in_the_log(course, capsys) -> None:
    stored = course.result(LAB, written_key(course, LAB, "ada"))
    spoiled = json.loads(stored.read_text())
    spoiled["exercises"]["00-warm-up"]["public"]["score"] = 0.0
    stored.write_text(json.dumps(spoiled))
    assert regrade(course) == 0
    assert json.loads(stored.read_text())["exercises"]["00-warm-up"]["public"]["score"] == 1.0
    told = capsys.readouterr().out.split("\n")
    assert [line.split() for line in told if "total" in line] == [["total", "4.5", "4.5"]]
    assert f"written; next: python -m grading feedback {course.root} {LAB}" in told
    facts = last(course, "graded")
    assert facts["changed"] == []
    assert facts["regraded"]["reason"] == "the tolerance was too tight"
    assert facts["regraded"]["before"] == facts["regraded"]["after"]
    assert facts["regraded"]["before"]["by_hand"] == {"00-open": 1.5}
    assert facts["regraded"]["after"]["total"] == 4.5
    code, said = audit(course, capsys)
    assert code == 0
    assert "regraded (the tolerance was too tight): 4.5 points before, 4.5 after" in said


def waits_for_a_person(course: Course) -> bool:
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        return bool(gradebook.find_grade("00-open", LAB, LAB, "ada").needs_manual_grade)


@pytest.mark.slow
def test_an_answer_that_a_person_has_read_is_not_read_again_unless_it_has_changed(course) -> None:
    """After an extension, an update of the grader or a regrade of what was handed in, students lose no word of it."""
    assert regrade(course) == 0
    assert not waits_for_a_person(course)
    (handin,) = gather_record(course).handins
    assert not any(mark.waiting for mark in handin.marks) and score(course) == 4.5
    submit(course, "ada", WRONG)
    assert grade(course, LAB, ["ada"], workers=1, isolation="none") == []
    assert waits_for_a_person(course)


@pytest.mark.slow
def test_lower_points_are_told_and_written_only_when_asked_for(course, capsys) -> None:
    key = written_key(course, LAB, "ada")
    submit(course, "ada", WRONG)
    assert regrade(course) == 1
    told = capsys.readouterr().out
    assert "lower than before: 00-warm-up-check, the total" in told
    assert "it would be" in told and "nothing was changed; --accept-lower writes the lower points" in told
    assert "changed since the earlier grade: submission" in told
    assert score(course) == 4.5 and written_key(course, LAB, "ada") == key
    assert last(course, "regrade refused")["before"]["total"] == 4.5
    code, said = audit(course, capsys)
    assert code == 0 and "regrade refused, regraded (the tolerance was too tight): 4.5 points before" in said
    assert regrade(course, "--accept-lower") == 0
    assert "written; next:" in capsys.readouterr().out
    lower = score(course)
    assert lower < 4.5
    submit(course, "ada", SOLUTION)
    assert regrade(course, reason="she sent the wrong file") == 0
    assert "lower than before" not in capsys.readouterr().out
    assert score(course) == 4.5
    facts = last(course, "graded")["regraded"]
    assert (facts["before"]["total"], facts["after"]["total"]) == (lower, 4.5)
    assert audit(course, capsys)[0] == 0


@pytest.mark.full("classroom")
def test_a_late_penalty_that_would_be_new_is_told_as_well(tmp_path, capsys) -> None:
    course = make_course(tmp_path / "course", '\nc.LateSubmissionPlugin.penalty_method = "zero"\n')
    submit(course, "ada", timestamp="2026-03-05 10:00:00 UTC")
    grade(course, LAB, ["ada"], workers=1, isolation="none")
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate="2026-03-02 00:00:00 UTC")
    assert regrade(course) == 1
    told = capsys.readouterr().out
    assert ["late", "penalty", "0", "3"] in [line.split() for line in told.split("\n")]
    assert "lower than before: the total" in told and score(course) == 3.0
    (course.root / "extensions.csv").write_text("student,lab,until,reason\nada,00,2026-03-06,\n")
    assert regrade(course) == 0
    assert score(course) == 3.0


@pytest.mark.slow
def test_what_cannot_be_regraded_is_refused_and_nothing_changes(course, capsys, monkeypatch) -> None:
    assert regrade(course, reason="  ") == 2
    assert 'a regrade needs a reason: say why: --reason "the tolerance' in capsys.readouterr().err
    assert main(["regrade", str(course.root), "00", "bob", "--reason", "x", "--isolation", "none"]) == 2
    told = capsys.readouterr().err
    assert f'nobody called "bob" has handed in {LAB}: there are: ' in told

    def lost(stream, submissions) -> None:
        stream.on_result(next(submissions), InfrastructureFault("the disk is gone"))

    with monkeypatch.context() as patch:
        patch.setattr(regrades, "run_all", lost)
        assert regrade(course) == 2
    assert (
        "it could not be run (infrastructure: InfrastructureFault: the disk is gone): the grade stands as it was"
        in capsys.readouterr().err
    )
    course.submitted(LAB, "ada").write_text("{")
    assert regrade(course) == 2
    told = capsys.readouterr().err
    assert told.startswith("grading: the submission of ada cannot be read (") and "what was graded stands" in told
    assert score(course) == 4.5 and "regraded" not in last(course, "graded")
