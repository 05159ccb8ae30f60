"""The writer leaves what nbgrader's own autograding leaves: every row of the database, every file, every permission."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections import Counter
from functools import partial

import pytest
from nbformat.v4 import new_notebook

import grading.gradebook.drafts as drafts
import grading.gradebook.session as session
from grading.course import Course
from grading.errors import UserError
from grading.gradebook.autograding import is_standard_autograding
from grading.gradebook.setup import release
from grading.log import Log
from grading.nbgrader_api import load_config
from grading.pipeline import grade_lab
from tests.grading.compared import assert_same, book, by_nbgrader, copy_of, files, rows
from tests.grading.lessons import LAB, SOLUTION, cell_of, grade, make_course, submit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"
PENALTY = """
from nbgrader.plugins import BasePlugin
class Tenth(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        if student_id == "generous":
            return score + 100
        return None if student_id == "none" else score * 0.1
c.AssignLatePenalties.plugin_class = Tenth
"""
COUNTS = """
from pathlib import Path
from nbgrader.preprocessors import SaveAutoGrades
class Counting(SaveAutoGrades):
    def preprocess(self, nb, resources):
        with (Path(__file__).parent / "counted").open("a") as file:
            file.write(resources["nbgrader"]["student"] + "\\n")
        return super().preprocess(nb, resources)
steps = c.Autograde.autograde_preprocessors
c.Autograde.autograde_preprocessors = [Counting if step is SaveAutoGrades else step for step in steps]
"""
EARLY, LATE = "2025-12-31 23:00:00 UTC", "2026-01-01 01:00:00 +0000"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Course:
    """A lab with a due date, files of its own, and a class that hands in all sorts of things."""
    course = make_course(tmp_path_factory.mktemp("pristine") / "course", PENALTY)
    (course.source(LAB).parent / "data").mkdir()
    (course.source(LAB).parent / "data" / "values.csv").write_text("1,2,3\n")
    (course.source(LAB).parent / "helper.py").write_text("X = 1\n")
    release(course, [LAB])
    with book(course) as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate="2026-01-01 00:00:00 UTC")
        gradebook.add_student("ada", first_name="Ada", last_name="Lovelace", email="a@b.c", lms_user_id="7")
    submit(course, "ada")
    submit(course, "blank", None, timestamp=EARLY)
    submit(course, "essay", change=write_essay, timestamp=EARLY)
    submit(course, "generous", WRONG, timestamp=LATE)
    submit(course, "late", change=write_essay, timestamp=LATE)
    submit(course, "none", timestamp=LATE)
    submit(course, "Ñandú, =SUM(A1)", "print('\\x1b[31mé\\u2028')\n" + SOLUTION)
    folder = submit(course, "files").parent
    for name in ("helper.py", "sub/notes.txt", ".ipynb_checkpoints/x.txt", "other.ipynb", "__pycache__/y.pyc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
    return course


@pytest.fixture(scope="module")
def graded(pristine) -> Course:
    """The same class when `grade` has been there; its results are stored."""
    course = copy_of(pristine, pristine.root.with_name("graded"))
    assert grade(course, LAB, course.students(LAB), workers=1) == []
    return course


def write_essay(notebook) -> None:
    cell_of(notebook, "00-open").source = "because of the bits"


def test_a_first_grading(graded, pristine, tmp_path) -> None:
    other = copy_of(pristine, tmp_path / "other")
    shutil.copytree(graded.root / ".grading" / "results", other.root / ".grading" / "results")
    by_nbgrader(other)
    assert_same(graded, other)
    penalties = {row[0]: row[3] for row in rows(graded) if len(row) == 4 and row[1] == LAB}
    assert penalties["generous"] == 2 and penalties["late"] == pytest.approx(0.3) and penalties["none"] is None


def test_a_regrade_after_points_given_by_hand(graded, tmp_path) -> None:
    ours = copy_of(graded, tmp_path / "ours")
    with book(ours) as gradebook:
        given = gradebook.find_grade("00-open", LAB, LAB, "essay")
        given.manual_score, given.needs_manual_grade = 1.5, False
        checked = gradebook.find_grade("00-plain", LAB, LAB, "late")
        checked.manual_score, checked.needs_manual_grade, checked.extra_credit = 1.0, False, 0.5
        gradebook.find_comment("00-open", LAB, LAB, "essay").manual_comment = "well put"
        gradebook.find_submission_notebook(LAB, LAB, "late").flagged = True
        gradebook.grant_extension(LAB, "none", days=3)
        gradebook.db.commit()
    submit(ours, "essay", WRONG, change=write_essay, timestamp=LATE)
    submit(ours, "late", WRONG)
    submit(ours, "blank")
    theirs = copy_of(ours, tmp_path / "theirs")
    assert grade(ours, LAB, ours.students(LAB), workers=1) == []
    for path in (ours.root / ".grading" / "results" / LAB).iterdir():
        shutil.copy(path, theirs.root / ".grading" / "results" / LAB)
    by_nbgrader(theirs)
    assert_same(ours, theirs)
    with book(ours) as gradebook:
        given = gradebook.find_grade("00-open", LAB, LAB, "essay")
        assert (given.manual_score, given.needs_manual_grade) == (1.5, True)


@pytest.mark.parametrize(
    "change",
    [
        "c.Autograde.permissions = 640",
        "c.BaseConverter.post_convert_hook = print",
        "c.Autograde.autograde_preprocessors.append('x.Y')",
        "c.SaveAutoGrades.enabled = False",
        "c.AssignLatePenalties.enabled = False",
        "c.Exporter.preprocessors = ['x.Y']",
        "c.CourseDirectory.autograded_directory = 'elsewhere'",
        "c.FilesWriter.files = ['*.csv']",
    ],
)
def test_settings_that_change_autograding_are_seen(graded, tmp_path, change) -> None:
    course = copy_of(graded, tmp_path / "course")
    assert is_standard_autograding(load_config(course))
    with course.config.open("a") as file:
        file.write(f"\n{change}\n")
    assert not is_standard_autograding(load_config(course))


def test_an_instructors_own_step_is_not_left_out(graded, tmp_path) -> None:
    course = copy_of(graded, tmp_path / "course")
    with course.config.open("a") as file:
        file.write(COUNTS)
    assert grade(course, LAB, course.students(LAB), workers=1) == []
    counted = course.root / "counted"
    assert counted.read_text().splitlines() == course.students(LAB)
    assert grade(course, LAB, course.students(LAB), workers=1) == []
    assert len(counted.read_text().splitlines()) == len(course.students(LAB))
    assert list((course.root / ".grading" / "drafts" / LAB).iterdir()) == []
    before = dict(files(graded))
    assert {name: mode for name, (mode, _) in files(course).items()} == {
        name: mode for name, (mode, _) in before.items()
    }
    assert rows(course) == rows(graded)


def test_one_that_cannot_be_written_costs_nobody_else_a_grade(pristine, graded, tmp_path) -> None:
    course = copy_of(pristine, tmp_path / "course")
    shutil.copytree(graded.root / ".grading" / "results", course.root / ".grading" / "results")
    raises = 'raise ZeroDivisionError("a plugin of ours")\n        return None if student_id == "none"'
    with course.config.open("a") as file:
        file.write(PENALTY.replace('return None if student_id == "none"', raises))
    ungraded = grade(course, LAB, course.students(LAB), workers=1)
    assert {item.student for item in ungraded} == {"late", "none"}
    assert "its grade could not be written: a plugin of ours" in ungraded[0].reason
    assert not course.autograded(LAB, "late").exists() and course.autograded(LAB, "ada").exists()


def test_a_folder_that_cannot_be_replaced_costs_nobody_else_anything(pristine, graded, tmp_path) -> None:
    course = copy_of(pristine, tmp_path / "course")
    shutil.copytree(graded.root / ".grading" / "results", course.root / ".grading" / "results")
    (tmp_path / "elsewhere").mkdir()
    place = course.autograded(LAB, "blank").parent
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "elsewhere")
    others = set(course.students(LAB)) - {"blank"}
    for n_graded in (len(others), 0):
        outcome = grade_lab(course, LAB, course.students(LAB), workers=1, isolation="auto")
        assert [(item.student, item.outcome) for item in outcome.ungraded] == [("blank", "infrastructure")]
        problem = "its graded notebook could not be put in its place: Cannot call rmtree on a symbolic link"
        assert outcome.ungraded[0].reason == problem
        assert (outcome.tally.n_graded, outcome.tally.n_unchanged) == (n_graded, len(others) - n_graded)
        assert outcome.tally.n_left == 0
    logged = Counter(entry.facts["student"] for entry in Log(course).entries() if entry.kind == "graded")
    assert logged == {**dict.fromkeys(others, 1), "blank": 2}
    assert rows(course) == rows(graded)
    place.unlink()
    assert grade(course, LAB, course.students(LAB), workers=1) == []
    assert_same(course, graded)


def test_a_locked_gradebook_is_waited_for_then_told_and_a_rerun_completes(
    pristine, graded, tmp_path, monkeypatch
) -> None:
    course = copy_of(pristine, tmp_path / "course")
    shutil.copytree(graded.root / ".grading" / "results", course.root / ".grading" / "results")
    holder = sqlite3.connect(course.root / "gradebook.db", isolation_level=None)
    holder.execute("begin immediate")
    # SQLite itself waits for 5 s each time.
    monkeypatch.setattr(sqlite3.dbapi2, "connect", partial(sqlite3.connect, timeout=0.1))
    monkeypatch.setattr(session, "PATIENCE_S", 0.0)
    with pytest.raises(UserError, match=r"another program held the gradebook for 0 s .*: close that program and run"):
        grade(course, LAB, course.students(LAB), workers=1)
    assert not (course.root / "autograded").exists()
    monkeypatch.setattr(session, "PATIENCE_S", 60.0)
    pauses = []
    monkeypatch.setattr(
        session.time, "sleep", lambda s: (pauses.append(s), holder.in_transaction and holder.rollback())
    )
    assert grade(course, LAB, course.students(LAB), workers=1) == []
    assert pauses and rows(course) == rows(graded)
    holder.close()


def test_what_was_being_written_when_the_run_was_killed_is_written_again(
    pristine, graded, tmp_path, monkeypatch
) -> None:
    """In the gradebook, but not yet in its place: the old notebook must not pass for the grade."""
    course = copy_of(graded, tmp_path / "course")
    before = course.autograded(LAB, "ada").read_bytes()
    submit(course, "ada", WRONG)

    class Killed(BaseException):
        pass

    def kill(*_args):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("grading.gradebook.writer.publish_draft", kill)
        with pytest.raises(Killed):
            grade(course, LAB, ["ada"], workers=1)
    assert course.autograded(LAB, "ada").read_bytes() == before
    submit(course, "ada")
    assert grade(course, LAB, ["ada"], workers=1) == []
    assert rows(course) == rows(graded)


def test_links_among_a_students_files_are_not_followed(pristine, graded, tmp_path) -> None:
    course = copy_of(pristine, tmp_path / "course")
    folder = course.submitted(LAB, "ada").parent
    (folder / "solution.txt").symlink_to(course.source(LAB))
    assert grade(course, LAB, ["ada"], workers=1) == []
    assert [path.name for path in course.autograded(LAB, "ada").parent.glob("*.txt")] == []


def test_nothing_beside_a_notebook_keeps_its_student_from_a_grade(pristine, tmp_path) -> None:
    """Names of the course's own files and folders for others, what is deep, and so much that a disk could be full."""
    course = copy_of(pristine, tmp_path / "course")
    folder = course.submitted(LAB, "ada").parent
    (folder / "data").write_text("a file")
    (folder / "helper.py").mkdir()
    (folder / "helper.py" / "inner.txt").write_text("x")
    (folder / "own.txt").write_text("own")
    deep = folder.joinpath(*["deep"] * 200)
    deep.mkdir(parents=True)
    (deep / "x.txt").write_text("x")
    for n in range(7):
        with (folder / f"sparse-{n}").open("wb") as file:
            file.truncate(drafts.LARGE_BYTES)
    with (folder / "large").open("wb") as file:
        file.truncate(drafts.LARGE_BYTES + 1)
    assert grade(course, LAB, ["ada"], workers=1) == []
    place = course.autograded(LAB, "ada").parent
    found = {str(path.relative_to(place)): path.stat().st_size for path in place.rglob("*") if path.is_file()}
    assert found.pop("00_small.ipynb")
    assert found.pop("timestamp.txt", True)
    sparse = dict.fromkeys([f"sparse-{n}" for n in range(4)], drafts.LARGE_BYTES)
    assert found == {"data/values.csv": 6, "helper.py": 6, "own.txt": 3, **sparse}


def test_many_files_beside_a_notebook_are_looked_at_once_each(pristine, tmp_path) -> None:
    course = copy_of(pristine, tmp_path / "course")
    folder = course.submitted(LAB, "ada").parent
    for n in range(20_000):
        (folder / f"{n:05}").touch()
    began = time.process_time()
    drafts.make_draft(course, LAB, "ada", new_notebook(), ["*.pyc", "0000?"])
    assert time.process_time() - began < 20
    found = {path.name for path in drafts.draft_of(course, LAB, "ada").iterdir() if path.name.isdigit()}
    assert found == {f"{n:05}" for n in range(10, 10 + drafts.MOST_FILES)}


def test_points_that_the_gradebook_does_not_know_are_said_before_anything_runs(pristine, tmp_path, monkeypatch) -> None:
    course = copy_of(pristine, tmp_path / "course")
    text = course.source(LAB).read_text().replace("00-plain", "00-plainer")
    course.source(LAB).write_text(text)
    with pytest.raises(UserError, match="the gradebook does not know 00-plainer of 00_small: release the lab again"):
        grade(course, LAB, ["ada"], workers=1)
    (course.root / "gradebook.db").unlink()
    with pytest.raises(UserError, match="00_small is not in the gradebook: release it first"):
        grade(course, LAB, ["ada"], workers=1)
