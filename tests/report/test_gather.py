"""The record of a class: nbgrader's points, our reasons, and everybody in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grading.course import Course
from grading.rebuild import read_template
from grading.report.gather import gather_record, items_of
from grading.report.points import LabPoints
from grading.report.record import ClassRecord, Handin, Mark
from tests.report.course import COMMA, FORMULA, LAB, OPEN, SCRIPT, TEST, empty_course, hand_in, stored


def _handin(record: ClassRecord, student: str) -> Handin:
    (found,) = [handin for handin in record.handins if handin.student == student]
    return found


def _mark(record: ClassRecord, student: str, item: str) -> Mark:
    (found,) = [mark for mark in _handin(record, student).marks if mark.item.id == item]
    return found


def test_the_items_of_a_lab(record: ClassRecord) -> None:
    (lab,) = record.labs
    assert [(item.id, item.kind, item.max_score) for item in lab.items] == [
        ("00-warm-up", "exercise", 1.0),
        (TEST, "test", 2.0),
        (OPEN, "manual", 2.0),
    ]
    assert lab.title == "Lab 00: <i>Warm-up</i>"
    assert [item.title for item in lab.items] == ["Root-mean-square along an axis", lab.title, lab.title]
    assert (record.name, record.isolations) == ("numerics", {"none": 6})


NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem[:2])
def test_no_two_items_of_a_lab_have_the_same_title(path: Path) -> None:
    titles = [item.title for item in items_of(read_template(path), LabPoints())]
    assert sorted(set(titles)) == sorted(titles) and all(titles)


def test_open_questions_are_named_by_their_letters() -> None:
    items = items_of(read_template(NOTEBOOKS / "05_checkpointing.ipynb"), LabPoints())
    assert [item.title for item in items if item.kind == "manual"] == ["Open questions, A", "Open questions, B"]


@pytest.mark.parametrize(
    "student, state, outcomes, score",
    [
        ("ada", "graded", ["passed", "unsupervised", "needs grading"], 3.0),
        (FORMULA, "graded", ["unanswered", "unsupervised", "unanswered"], 0.0),
        (COMMA, "graded", ["failed", "unsupervised", "unanswered"], 2.0),
        ("hidden", "graded", ["failed", "unsupervised", "unanswered"], 2.0),
        ("late", "graded", ["passed", "unsupervised", "by hand"], 1.5),
        ("torn", "unreadable", ["unreadable"] * 3, None),
        ("afterwards", "not graded yet", ["not graded yet"] * 3, None),
    ],
)
def test_what_each_student_got(record: ClassRecord, student: str, state: str, outcomes: list, score: float) -> None:
    handin = _handin(record, student)
    assert handin.state == state
    assert [mark.outcome for mark in handin.marks] == outcomes
    assert handin.score == score


def test_points_are_those_of_the_gradebook(course: Course, record: ClassRecord) -> None:
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}", "numerics") as gradebook:
        for handin in record.handins:
            if handin.state == "graded":
                submission = gradebook.find_submission(LAB, handin.student)
                assert sum(mark.score for mark in handin.marks) == submission.score
                assert handin.penalty == submission.late_submission_penalty
                assert handin.max_score == submission.max_score


def test_points_by_hand_count_and_a_late_penalty_is_taken_off(record: ClassRecord) -> None:
    # nbgrader sets the penalty when it grades, so what a person adds afterwards stays.
    late = _handin(record, "late")
    assert _mark(record, "late", OPEN).score == 1.5
    assert (late.penalty, late.score) == (3.0, 1.5)


def test_a_hint_is_the_one_that_was_diagnosed(course: Course, record: ClassRecord) -> None:
    told = stored(course, COMMA).exercises["00-warm-up"].public.hint
    mark = _mark(record, COMMA, "00-warm-up")
    assert told and mark.hint == told
    assert not mark.on_hidden


def test_a_failed_hidden_case_is_said_to_be_hidden(record: ClassRecord) -> None:
    mark = _mark(record, "hidden", "00-warm-up")
    assert mark.on_hidden
    assert mark.hint


def test_without_a_hint_the_problem_is_told(record: ClassRecord) -> None:
    assert "<script>" in _mark(record, SCRIPT, "00-warm-up").hint
    assert "NotImplementedError" in _mark(record, FORMULA, TEST).hint


def test_notes_and_reasons(record: ClassRecord) -> None:
    assert any("twice" in note for note in _handin(record, COMMA).notes)
    assert "complete notebook" in _handin(record, "torn").reason
    assert _handin(record, "ada").feedback.is_file()
    assert _handin(record, "afterwards").feedback is None


def test_totals(record: ClassRecord) -> None:
    totals = {total.student: total for total in record.totals()}
    assert list(totals) == sorted(totals)
    assert (totals["ada"].score, totals["ada"].max_score, totals["ada"].complete) == (3.0, 5.0, True)
    assert not totals["torn"].complete


def test_collecting_changes_nothing(course: Course) -> None:
    before = _state(course)
    assert gather_record(course) == gather_record(course)
    assert _state(course) == before


def _state(course: Course) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(course.root.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_nobody_handed_in_and_no_gradebook(tmp_path) -> None:
    course = empty_course(tmp_path / "empty")
    (course.root / "gradebook.db").unlink()
    record = gather_record(course)
    assert [lab.lab for lab in record.labs] == [LAB]
    assert record.students == ()
    assert not (course.root / "gradebook.db").exists()


def test_an_earlier_grade_stays_and_says_so(tmp_path, course: Course) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(course.root, copy)
    again = Course.at(copy)
    shutil.rmtree(again.submitted(LAB, "ada").parent)
    hand_in(again, "ada", None)
    shutil.rmtree(again.submitted(LAB, COMMA).parent)
    hand_in(again, COMMA, None)
    again.submitted(LAB, COMMA).write_text("{")
    record = gather_record(again)
    assert _handin(record, "ada").score == 3.0
    assert "run `grade` again" in _handin(record, "ada").outdated
    assert "not graded yet" in _handin(record, COMMA).outdated
    assert _handin(record, FORMULA).outdated is None
