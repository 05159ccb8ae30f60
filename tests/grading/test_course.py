"""The whole journey inside nbgrader: release, submit, grade, gradebook, feedback, and everything that can go wrong."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.course import Course
from grading.errors import UserError
from grading.gradebook.feedback import make_feedback
from grading.gradebook.setup import set_up
from grading.nbgrader_api import load_config, open_api
from grading.results import read_ungraded
from labkit import exercises
from tests.grading.lessons import (
    HIDDEN_TEST,
    LAB,
    SOLUTION,
    cell_of,
    command,
    grade,
    make_course,
    points,
    submit,
    written_key,
)

WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"
LATE = """
from nbgrader.plugins import BasePlugin
class Tenth(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return 0.5
c.AssignLatePenalties.plugin_class = Tenth
"""
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    """A released course, set up once and copied for every test."""
    root = tmp_path_factory.mktemp("pristine") / "course"
    make_course(root)
    return root


@pytest.fixture
def course(pristine, tmp_path) -> Course:
    root = tmp_path / "a course with spaces, ünïcode"
    shutil.copytree(pristine, root)
    return Course.at(root)


def test_a_course_may_have_some_of_the_labs(tmp_path) -> None:
    assert [lab[:2] for lab in set_up(tmp_path / "course", "some", labs=["02", "00"]).labs()] == ["00", "02"]
    with pytest.raises(UserError, match="would have no labs"):
        set_up(tmp_path / "none", "none", labs=[])


def test_a_class_is_graded_into_nbgraders_own_gradebook(course) -> None:
    submit(course, "ada")
    submit(course, "blank", None)
    submit(course, "O'Brien, Pat", WRONG)
    submit(course, "Ñandú Özgür =SUM(A1)", "import sys\nprint('noise', file=sys.stderr)\n" + SOLUTION)
    students = course.students(LAB)
    assert grade(course, LAB, students, workers=1) == []
    assert {student: points(course, student) for student in students} == {
        "ada": {"00-warm-up-check": 1, "00-plain": 2, "00-open": 0},
        "blank": {"00-warm-up-check": 0, "00-plain": 0, "00-open": 0},
        "O'Brien, Pat": {"00-warm-up-check": 0, "00-plain": 2, "00-open": 0},
        "Ñandú Özgür =SUM(A1)": {"00-warm-up-check": 1, "00-plain": 2, "00-open": 0},
    }


def test_names_that_nbgrader_takes_for_patterns_are_refused_before_they_touch_others(course) -> None:
    submit(course, "a1")
    grade(course, LAB, ["a1"], workers=1)
    before = course.autograded(LAB, "a1").stat().st_mtime_ns
    for name in ("a[1]", "a*", "a?", "a\n1"):
        submit(course, name, WRONG)
    ungraded = grade(course, LAB, course.students(LAB), workers=1)
    assert {item.outcome for item in ungraded} == {"unreadable"}
    reasons = {item.student: item.reason for item in ungraded}
    assert reasons.pop("a\n1") == r"the name 'a\n1' has invisible characters: rename the folder"
    assert reasons.keys() == {"a[1]", "a*", "a?"}
    assert all(reason.startswith("nbgrader cannot take the name 'a") for reason in reasons.values())
    assert course.autograded(LAB, "a1").stat().st_mtime_ns == before


def test_nbgraders_own_command_and_api_take_the_same_path(course) -> None:
    submit(course, "ada")
    submit(course, "bob", WRONG)
    done = command(course, "nbgrader", "autograde", LAB, "--student", "ada")
    assert done.returncode == 0, done.stderr
    assert open_api(course).autograde(LAB, "bob")["success"]
    for student, wanted in (("ada", 1), ("bob", 0)):
        assert points(course, student)["00-warm-up-check"] == wanted
        assert written_key(course, LAB, student)


def test_feedback_explains_itself_and_leaks_nothing(course) -> None:
    tell = "def rms(x, dim):\n    raise ValueError('INPUT ' + str(x.flatten()[0].item()))"
    shapes = {case.shape for case in exercises.find("00-warm-up").public}
    hidden_only = (
        f"def rms(x, dim):\n    if tuple(x.shape) not in {shapes}:\n"
        "        raise ValueError(f'LEAK {x.flatten()[0].item()}')\n"
        "    return x.double().pow(2).mean(dim).sqrt().to(x.dtype)"
    )
    script = "print('<script>alert(1)</script>')\n" + SOLUTION
    submit(course, "ada")
    submit(course, "bob", WRONG)
    submit(course, "eve", hidden_only)
    submit(course, "mallory", script)
    submit(course, "public", tell)
    assert grade(course, LAB, course.students(LAB), workers=1) == []
    assert make_feedback(course, LAB) == 5
    page = {student: course.feedback(LAB, student).read_text() for student in course.students(LAB)}
    assert "all 7 cases pass" in page["ada"] or "cases pass, 1 point" in page["ada"]
    assert "dim</code> is not used" in page["bob"]
    assert "the public cases pass, but not every hidden one does" in page["eve"]
    # The plain test's input is no secret, and what it raises is told; a hidden case's is not.
    assert set(re.findall(r"LEAK (-?[0-9.]+|nan|inf)", page["eve"])) == {"1.0"}
    assert "<script>alert(1)" not in page["mallory"] and "&lt;script&gt;alert(1)" in page["mallory"]
    assert "INPUT" in page["public"]
    for text in page.values():
        assert HIDDEN_TEST not in text and "HIDDEN TESTS" not in text
        assert str(course.root) not in text


def test_a_resubmission_gets_new_hidden_cases_and_the_new_grade(course) -> None:
    submit(course, "ada", WRONG)
    grade(course, LAB, ["ada"], workers=1)
    first = written_key(course, LAB, "ada")
    assert points(course, "ada")["00-warm-up-check"] == 0
    submit(course, "ada")
    grade(course, LAB, ["ada"], workers=1)
    assert points(course, "ada")["00-warm-up-check"] == 1
    assert written_key(course, LAB, "ada") != first
    assert len(list((course.root / ".grading" / "results" / LAB).iterdir())) == 2


def test_grading_again_changes_nothing(course) -> None:
    submit(course, "ada")
    grade(course, LAB, ["ada"], workers=1)
    graded = course.autograded(LAB, "ada")
    before = graded.read_bytes(), graded.stat().st_mtime_ns
    assert grade(course, LAB, ["ada"], workers=1) == []
    assert (graded.read_bytes(), graded.stat().st_mtime_ns) == before


def test_manual_grades_survive_and_wait_for_a_person(course) -> None:
    def answer(notebook):
        cell_of(notebook, "00-open").source = "because of the bits"

    submit(course, "ada", change=answer)
    grade(course, LAB, ["ada"], workers=1)
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        found = gradebook.find_grade("00-open", LAB, LAB, "ada")
        assert found.auto_score is None and found.needs_manual_grade
        found.manual_score = 1.5
        gradebook.db.commit()
    submit(course, "ada", WRONG, change=answer)
    grade(course, LAB, ["ada"], workers=1)
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        assert gradebook.find_grade("00-open", LAB, LAB, "ada").manual_score == 1.5
        assert gradebook.find_submission(LAB, "ada").score == 1.5 + 2


def test_late_penalties_are_nbgraders(tmp_path) -> None:
    course = make_course(tmp_path / "late", LATE)
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate="2026-01-01 00:00:00 UTC")
    submit(course, "ada", timestamp="2026-01-01 01:00:00 UTC")
    submit(course, "bob", timestamp="2025-12-31 23:00:00 UTC")
    grade(course, LAB, ["ada", "bob"], workers=1)
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        penalty = {name: gradebook.find_submission(LAB, name).late_submission_penalty for name in ("ada", "bob")}
    assert penalty == {"ada": 0.5, "bob": 0}


def test_what_cannot_be_read_is_reported_and_costs_nobody_else(course, capsys) -> None:
    submit(course, "ada")
    broken = submit(course, "bob")
    broken.write_bytes(broken.read_bytes()[:500])
    misnamed = submit(course, "eve")
    misnamed.rename(misnamed.with_name("my solution.ipynb"))
    kernel = submit(
        course, "kim", change=lambda notebook: notebook.metadata.update(kernelspec={"name": "R", "display_name": "R"})
    )
    assert kernel.exists()
    assert main(["grade", str(course.root), "00", "--workers", "1"]) == 1
    assert points(course, "ada")["00-warm-up-check"] == 1
    assert points(course, "kim")["00-warm-up-check"] == 1
    ungraded = read_ungraded(course, LAB)
    assert {name: entry["outcome"] for name, entry in ungraded.items()} == {"bob": "unreadable", "eve": "unreadable"}
    printed = capsys.readouterr().out
    assert "bob: 00_small.ipynb is not a complete notebook" in printed
    assert "eve: 00_small.ipynb cannot be read: No such file or directory; the folder has: my solution.ipynb" in printed
    submit(course, "bob")
    misnamed.with_name("my solution.ipynb").rename(misnamed)
    assert main(["grade", str(course.root), "00", "--workers", "1"]) == 0
    assert read_ungraded(course, LAB) == {}


def test_an_empty_class_is_no_error(course, capsys) -> None:
    assert main(["grade", str(course.root), "00"]) == 0
    assert "no submissions of 00_small" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["grade", "{tmp}/nothing", "00"], "is not a course folder: set one up: python -m grading course"),
        (["grade", "{course}", "07"], 'there is no lab "07" in this course: it has: 00_small'),
        (["course", "{course}"], "exists and is not empty: choose another folder"),
        (["release", "{course}", "x"], 'there is no lab "x"'),
        (["feedback", "{course}", "9"], 'there is no lab "9"'),
        (["grade", "{course}", "00", "--student", "nobody"], "nobody"),
    ],
)
def test_requests_that_cannot_be_done_are_one_line(course, tmp_path, capsys, words, message) -> None:
    words = [word.format(course=course.root, tmp=tmp_path) for word in words]
    assert main(words) in (1, 2)
    said = capsys.readouterr()
    assert message in said.out + said.err
    assert "Traceback" not in said.out + said.err


def test_a_lost_key_is_refused_not_replaced(course, capsys) -> None:
    submit(course, "ada")
    (course.root / ".grading" / "course.key").unlink()
    assert main(["grade", str(course.root), "00"]) == 2
    assert "course.key is missing or damaged: restore it from a backup" in capsys.readouterr().err
    with pytest.raises(UserError):
        course.key()


def test_the_key_is_the_owners_alone(course) -> None:
    assert (course.root / ".grading" / "course.key").stat().st_mode & 0o077 == 0


def test_grading_leaves_the_submissions_and_the_sources_alone(course) -> None:
    submit(course, "ada", "open('x.txt', 'w').write('x')\n" + SOLUTION)

    def digest() -> str:
        files = [path for name in ("submitted", "source", "release") for path in (course.root / name).rglob("*")]
        parts = [f"{path} {path.read_bytes()!r}" for path in sorted(files) if path.is_file()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    before = digest()
    grade(course, LAB, ["ada"], workers=1)
    assert digest() == before


def test_a_full_disk_stops_with_a_reason_and_a_rerun_completes(course, monkeypatch) -> None:
    submit(course, "ada")
    real = os.replace

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        grade(course, LAB, ["ada"], workers=1)
    monkeypatch.setattr(os, "replace", real)
    assert list((course.root / ".grading" / "results" / LAB).glob("*")) == []
    assert grade(course, LAB, ["ada"], workers=1) == []
    assert points(course, "ada")["00-warm-up-check"] == 1


def test_the_graded_notebook_is_valid_and_says_which_job_made_it(course) -> None:
    submit(course, "ada")
    grade(course, LAB, ["ada"], workers=1)
    notebook = nbformat.read(course.autograded(LAB, "ada"), 4)
    nbformat.validate(notebook)
    key = notebook.metadata["grading"]["job"]
    stored = json.loads(course.result(LAB, key).read_text())
    assert stored["student"] == "ada" and stored["key"] == key


def test_the_instructors_own_configuration_counts(course) -> None:
    with course.config.open("a") as file:
        file.write("\nc.CourseDirectory.db_url = 'sqlite:///' + c.CourseDirectory.root + '/other.db'\n")
    assert load_config(course).CourseDirectory.db_url.endswith("other.db")
