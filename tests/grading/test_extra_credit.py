"""An optional exercise gives extra credit: in nbgrader's gradebook by either way of grading, in the log and the report.

The small lab has one more exercise here, an optional one of lab 02.
"""

from __future__ import annotations

import nbformat
import pytest
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.audit.compare import differences, read_rows
from grading.audit.story import story_of
from grading.build.stub import CODE_STUB
from grading.course import Course
from grading.errors import UserError
from grading.gradebook.setup import release
from grading.log import Log
from grading.log.grades import last_grades
from grading.nbgrader_api import open_api
from grading.report.canvas import as_canvas
from grading.report.csv_table import as_csv
from grading.report.gather import gather_record
from grading.report.html import as_page
from grading.report.moodle import as_moodle
from labkit.exercises import find
from tests.grading.lessons import LAB, SOLUTION, _cell, cell_of, grade, make_course, submit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]
OPTIONAL = find("02-merge-smallest")
CELL = f"{OPTIONAL.id}-check"
RIGHT = """import heapq
def merge_smallest(values):
    parts = list(values)
    heapq.heapify(parts)
    while len(parts) > 1:
        smallest = heapq.heappop(parts)
        heapq.heapreplace(parts, smallest + parts[0])
    return parts[0]"""
ZERO = "\nc.LateSubmissionPlugin.penalty_method = 'zero'\n"
STUDENTS = {"all": (SOLUTION, RIGHT), "core": (SOLUTION, None), "optional": (None, RIGHT), "wrong": (SOLUTION, "x = 1")}


def optional_cells(points: float) -> list:
    stub = f"def merge_smallest(values):\n    ### BEGIN SOLUTION\n    {CODE_STUB}\n    ### END SOLUTION"
    call = f'check("{OPTIONAL.id}", merge_smallest)'
    return [
        _cell(OPTIONAL.id, stub, solution=True),
        _cell(CELL, call, grade=True, locked=True, points=points),
    ]


def put_in(course: Course, points: float = 0) -> None:
    path = course.source(LAB)
    notebook = nbformat.read(path, 4)
    notebook.cells = [cell for cell in notebook.cells if not cell.id.startswith(OPTIONAL.id)] + optional_cells(points)
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Course:
    course = make_course(tmp_path_factory.mktemp("extra") / "course", ZERO)
    put_in(course)
    release(course, [LAB])
    with Gradebook(f"sqlite:///{course.root}/gradebook.db", "small") as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate="2026-01-01 00:00:00 UTC")
    for student, (core, optional) in STUDENTS.items():

        def answer(notebook, optional=optional) -> None:
            if optional:
                cell_of(notebook, OPTIONAL.id).source = optional

        submit(course, student, core, answer)
    submit(course, "late", SOLUTION, lambda notebook: answer(notebook, RIGHT), timestamp="2026-01-02 00:00:00 UTC")
    assert grade(course, LAB, course.students(LAB), workers=1) == []
    return course


def found(course: Course) -> dict[str, tuple]:
    """By student: points and maximum of the lab, extra credit of the optional cell, penalty."""
    rows = {}
    with Gradebook(f"sqlite:///{course.root}/gradebook.db", "small") as gradebook:
        for submission in gradebook.assignment_submissions(LAB):
            (grade_row,) = [row for row in submission.notebooks[0].grades if row.name == CELL]
            points = submission.score, submission.max_score
            rows[submission.student_id] = (*points, grade_row.extra_credit, submission.late_submission_penalty)
    return rows


WANTED = {
    "all": (3.9, 5.0, 0.9, 0),
    "core": (3.0, 5.0, 0.0, 0),
    "optional": (0.9, 5.0, 0.9, 0),
    "wrong": (3.0, 5.0, 0.0, 0),
    "late": (3.9, 5.0, 0.9, 3.9),
}


def test_the_gradebook_has_it_beyond_the_lab_s_points(course) -> None:
    assert found(course) == {name: pytest.approx(row) for name, row in WANTED.items()}


def test_nbgrader_s_own_command_gives_the_same(course) -> None:
    api = open_api(course)
    with Gradebook(f"sqlite:///{course.root}/gradebook.db", "small") as gradebook:
        gradebook.find_grade(CELL, LAB, LAB, "core").extra_credit = 50.0
        gradebook.find_grade("00-warm-up-check", LAB, LAB, "core").extra_credit = 0.25
        gradebook.db.commit()
    for student in course.students(LAB):
        done = api.autograde(LAB, student, force=True)
        assert done["success"], done
    kept = {"core": (3.25, 5.0, 0.0, 0)}
    assert found(course) == {name: pytest.approx(row) for name, row in (WANTED | kept).items()}
    with Gradebook(f"sqlite:///{course.root}/gradebook.db", "small") as gradebook:
        gradebook.find_grade("00-warm-up-check", LAB, LAB, "core").extra_credit = None
        gradebook.db.commit()


def test_every_export_has_both_sums(course) -> None:
    record = gather_record(course)
    scores = {handin.student: handin.score for handin in record.handins}
    assert scores == pytest.approx({"all": 3.9, "core": 3.0, "optional": 0.9, "wrong": 3.0, "late": 0.0})
    (lab,) = record.labs
    assert (lab.max_score, lab.max_extra) == (5.0, 0.9)
    assert f"all,{LAB},{OPTIONAL.id},0.9,0,passed," in as_csv(record)
    canvas = as_canvas(record, {})
    assert '"    Points Possible","","","","","5"' in canvas.text and '"all","","","all","","3.9"' in canvas.text
    moodle = as_moodle(record, {}, "username", comments=True)
    assert f"{OPTIONAL.id}: 0.9 of 0.9 extra" in moodle.text and f"{OPTIONAL.id}: 0 of 0.9 extra" in moodle.text
    page = as_page(record, course.root / "report.html")
    for text in ("5 points and 0.9 extra for what is optional", "with 0.9 extra", "of 0.9 extra"):
        assert text in page


def test_an_export_says_who_is_above_the_maximum(course) -> None:
    with Gradebook(f"sqlite:///{course.root}/gradebook.db", "small") as gradebook:
        row = gradebook.find_grade("00-open", LAB, LAB, "all")
        row.manual_score = 2.0
        gradebook.db.commit()
        try:
            remarks = as_canvas(gather_record(course), {}).remarks
            assert f"above the lab's maximum, thanks to optional exercises: all ({LAB})" in remarks
        finally:
            row.manual_score = None
            gradebook.db.commit()


def test_no_person_gave_it(course, capsys) -> None:
    assert main(["audit", str(course.root)]) == 0
    assert "given by a person" not in capsys.readouterr().out


def test_the_log_knows_it_and_the_audit_sees_a_change(course) -> None:
    entries = list(Log(course).entries())
    rows, last = read_rows(course), last_grades(entries)
    assert last[LAB, "all"].facts["extra"] == {CELL: 0.9}
    assert differences(rows, last) == []
    story = story_of(LAB, "all", entries, rows[LAB, "all"])
    assert story[0].startswith(f"{LAB}, all: 3.9 points, given ")
    assert any(line.startswith("  points ") and line.endswith(f"{CELL} 0.9 extra") for line in story)
    rows[LAB, "all"].extra[CELL] = 5.0
    n = last[LAB, "all"].n
    assert differences(rows, last) == [
        ((LAB, "all"), f"{CELL}: the gradebook has 5 of extra credit, entry {n} of the log gave 0.9")
    ]


def test_a_lab_whose_points_changed_is_released_again_before_it_is_graded(course) -> None:
    put_in(course, points=3)
    try:
        with pytest.raises(UserError, match=rf"the gradebook has other maxima than {LAB}'s source: {CELL} 0"):
            grade(course, LAB, ["all"], workers=1)
    finally:
        put_in(course)
