"""The audit of a really graded class: what was changed by whom is told, and what a person did is no fault."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.audit.story import WHAT_COUNTS
from grading.course import Course
from grading.intake.store import archived_path
from grading.log import Log
from grading.log.grades import last_grades
from tests.grading.lessons import LAB, cell_of, grade, make_course, submit

WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three students graded, one of them twice, and one whose file is no notebook."""
    root = tmp_path_factory.mktemp("audited") / "course"
    course = make_course(root)
    submit(course, "ada", change=_essay)
    submit(course, "bob", WRONG)
    submit(course, "=eve,")
    submit(course, "torn").write_text("{")
    grade(course, LAB, course.students(LAB), workers=1, isolation="none")
    submit(course, "bob")
    grade(course, LAB, ["bob"], workers=1, isolation="none")
    return root


def _essay(notebook) -> None:
    cell_of(notebook, "00-open").source = "because of the bits"


@pytest.fixture
def course(pristine: Path, tmp_path: Path) -> Course:
    shutil.copytree(pristine, tmp_path / "course")
    return Course.at(tmp_path / "course")


def audit(course: Course, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    return main(["audit", str(course.root), *words]), capsys.readouterr().out


def execute(course: Course, statement: str) -> None:
    """As somebody does who opens the database with another program."""
    with sqlite3.connect(course.root / "gradebook.db") as database:
        assert database.execute(statement).rowcount > 0


def test_an_honest_course_holds(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = audit(course, capsys)
    assert code == 0
    assert "log: every entry is there, unchanged and in order" in said
    assert "grades: 3 of 3 agree with the log" in said


def test_a_grade_is_explained(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = audit(course, capsys, "--lab", "00", "--student", "bob")
    facts = last_grades(Log(course).entries())[LAB, "bob"].facts
    assert code == 0 and said.startswith(f"{LAB}, bob: 3 points, given ")
    for text in (
        facts["submission"],
        facts["job"],
        f"source {facts['grader'][:16]}; Python ",
        "  isolation   none",
        "one cell 30 s",
        "00-warm-up: wall 10 s",
        "  outcomes    00-warm-up passed",
        "  points      00-warm-up-check 1, 00-plain 2, 00-open 0",
    ):
        assert text in said
    history = [line for line in said.splitlines() if "graded, " in line]
    assert history[0].endswith("graded, 2 points") and "graded, 3 points; changed: the submission" in history[1]
    assert "grades: 1 of 1 agree" in said


def test_who_has_no_grade_is_explained_too(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = audit(course, capsys, "--student", "torn")
    assert code == 0 and f"{LAB}, torn: no grade in the log" in said
    assert "ungraded; outcome unreadable, reason 00_small.ipynb is not a complete notebook" in said


def test_a_name_cannot_send_commands_to_the_terminal(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    execute(course, "insert into student (id) values ('=eve\u202e,')")
    execute(course, "update submitted_assignment set student_id = '=eve\u202e,' where student_id = '=eve,'")
    code, said = audit(course, capsys)
    assert code == 1 and "\u202e" not in said
    assert f"{LAB}, =eve?,: the gradebook has points that are not in the log" in said


def test_points_changed_in_the_database_are_told(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    execute(
        course,
        "update grade set auto_score = 2 where id = (select grade.id from grade"
        " join base_cell on base_cell.id = grade.cell_id and base_cell.name = '00-warm-up-check'"
        " join submitted_notebook on submitted_notebook.id = grade.notebook_id"
        " join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"
        " where submitted_assignment.student_id = 'ada')",
    )
    code, said = audit(course, capsys)
    n = last_grades(Log(course).entries())[LAB, "ada"].n
    assert code == 1
    assert f"{LAB}, ada: 00-warm-up-check: the gradebook has 2, entry {n} of the log gave 1" in said
    assert "grades: 2 of 3 agree with the log" in said
    assert audit(course, capsys, "--student", "bob")[0] == 0


def test_a_changed_penalty_is_told(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    execute(course, "update submitted_notebook set late_submission_penalty = 1.5")
    code, said = audit(course, capsys, "--student", "ada")
    assert code == 1 and "ada: late penalty: the gradebook has 1.5, entry " in said


def test_points_from_the_formgrader_are_no_fault(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        found = gradebook.find_grade("00-open", LAB, LAB, "ada")
        found.manual_score, found.needs_manual_grade = 1.5, False
        gradebook.find_grade("00-plain", LAB, LAB, "ada").extra_credit = 0.5
        gradebook.db.commit()
    code, said = audit(course, capsys, "--student", "ada")
    assert code == 0
    assert "  by hand     00-open 1.5" in said and "  extra       00-plain 0.5" in said
    assert "2 cells of 1 submissions have points given by a person, which the log does not cover" in said


def test_a_grade_out_of_nowhere_is_told(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    execute(course, "insert into student (id) values ('ghost')")
    execute(course, "update submitted_assignment set student_id = 'ghost' where student_id = 'ada'")
    code, said = audit(course, capsys)
    assert code == 1
    assert f"{LAB}, ghost: the gradebook has points that are not in the log" in said
    assert "ada: entry " in said and " of the log gave points, and the gradebook has none" in said


def test_changed_and_lost_files_are_told(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    graded = last_grades(Log(course).entries())
    result = course.result(LAB, graded[LAB, "ada"].facts["job"])
    result.write_text(result.read_text().replace('"passed"', '"failed"'))
    first = next(entry for entry in Log(course).entries() if entry.facts.get("student") == "bob")
    archived_path(course, LAB, first.facts["submission"]).unlink()
    code, said = audit(course, capsys)
    assert code == 1
    assert f"ada: the result of entry {graded[LAB, 'ada'].n} was changed after it was written" in said
    assert f"bob: the submission of entry {first.n} cannot be read (No such file or directory" in said


def test_a_changed_log_is_told(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(course)
    n = last_grades(log.entries())[LAB, "ada"].n
    lines = log.path.read_bytes().splitlines(keepends=True)
    lines[n - 1] = lines[n - 1].replace(b'"00-warm-up-check":1.0', b'"00-warm-up-check":0.0')
    log.path.write_bytes(b"".join(lines))
    code, said = audit(course, capsys)
    assert code == 1
    assert f"log: line {n}: entry {n} was changed after it was written" in said
    assert "ada: 00-warm-up-check: the gradebook has 1, entry" in said


def test_regrading_what_has_not_changed_adds_no_grade(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    before = [entry for entry in Log(course).entries() if entry.kind == "graded"]
    grade(course, LAB, ["ada", "bob"], workers=1, isolation="none")
    assert [entry for entry in Log(course).entries() if entry.kind == "graded"] == before
    assert audit(course, capsys)[0] == 0


def test_a_course_that_was_never_graded_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = audit(make_course(tmp_path / "new"), capsys)
    assert code == 0 and "grades: 0 of 0 agree with the log" in said


def test_an_unknown_lab_is_refused(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(course.root), "--lab", "77"]) == 2
    assert 'there is no lab "77" in this course: it has: 00_small' in capsys.readouterr().err


def test_all_that_counts_for_a_grade_is_logged_with_it(course: Course) -> None:
    assert set(WHAT_COUNTS) <= set(last_grades(Log(course).entries())[LAB, "ada"].facts)
