"""Submissions that once stopped a batch or read what was hidden; none does any more."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from grading.course import Course
from grading.errors import UserError
from grading.files import Unreadable
from grading.gradebook.feedback import make_feedback
from grading.rebuild import read_submission
from grading.results import read_ungraded
from labkit import exercises
from tests.grading.lessons import LAB, SOLUTION, cell_of, grade, make_course, points, submit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("pristine") / "course"
    make_course(root)
    return root


@pytest.fixture
def course(pristine, tmp_path) -> Course:
    return Course.at(shutil.copytree(pristine, tmp_path / "course"))


def grade_all(course: Course, isolation: str = "auto") -> dict[str, str]:
    return {item.student: item.outcome for item in grade(course, LAB, course.students(LAB), 2, isolation)}


def check_points(course: Course, student: str) -> float:
    return points(course, student)["00-warm-up-check"]


@pytest.fixture
def crowd(course) -> Course:
    """Two honest students among submissions that are too much of something."""
    submit(course, "honest")
    submit(course, "zoe")
    submit(course, "aab-huge", "def rms(x, dim): return 10**4000")
    submit(course, "aac-deep", f"x = {'-' * 8000}1\n{SOLUTION}")
    submit(course, "aad-surrogate", "print('\\ud800')\n" + SOLUTION)
    submit(course, "aaf-long", "#" * 2**21)
    submit(course, "aag-many", change=lambda notebook: notebook.cells.extend(new_code_cell("1") for _ in range(2000)))
    (course.submitted(LAB, "aag-many").parent / "timestamp.txt").write_text("")
    submit(course, "aah-time", timestamp="the day after tomorrow")
    odd = os.path.join(os.fsencode(course.root), b"submitted", b"\xff\xfe", os.fsencode(LAB))
    os.makedirs(odd)
    return course


UNREADABLE = dict.fromkeys(("aaf-long", "aag-many", "aah-time"), "unreadable")


def test_no_submission_keeps_the_others_from_their_grades(crowd) -> None:
    assert ungraded_of(crowd) == UNREADABLE


@pytest.mark.full("kills")
def test_nor_does_one_that_kills_what_runs_it(crowd, pool) -> None:
    """Where nothing confines them, these reach processes of ours."""
    submit(crowd, "aaa-kills-the-pool", "import os, signal\nppid = os.getppid()\n" + KILL_GRANDPARENT + SOLUTION)
    submit(crowd, "aae-kills-the-forkserver", "import os\nos.kill(os.getppid(), 9)\n" + SOLUTION)
    killers = dict.fromkeys(("aaa-kills-the-pool", "aae-kills-the-forkserver"), "suspected")
    assert ungraded_of(crowd, "none") == UNREADABLE | killers


def ungraded_of(course: Course, isolation: str = "auto") -> dict[str, str]:
    """Who of the crowd has no grade, and why; those who should have one have it."""
    ungraded = grade_all(course, isolation)
    assert check_points(course, "honest") == check_points(course, "zoe") == 1
    assert check_points(course, "aab-huge") == 0
    assert check_points(course, "aad-surrogate") == 1
    assert ungraded.pop("\udcff\udcfe") == "unreadable"
    assert ungraded.pop("aac-deep", "unreadable") == "unreadable"
    assert "not a date" in read_ungraded(course, LAB)["aah-time"]["reason"]
    return ungraded


KILL_GRANDPARENT = """
with open(f"/proc/{ppid}/stat") as file:
    grandparent = int(file.read().rsplit(")", 1)[1].split()[1])
os.kill(grandparent, signal.SIGKILL)
"""


def test_a_second_run_at_the_same_time_is_refused(course) -> None:
    submit(course, "ada")
    with course.locked(), pytest.raises(UserError, match="another run is grading this course"):
        grade(course, LAB, ["ada"], workers=1)
    assert grade(course, LAB, ["ada"], workers=1) == []


def test_links_and_pipes_are_not_followed(course, tmp_path) -> None:
    submit(course, "ada")
    target = course.submitted(LAB, "ada")
    for name, path in (("bob", course.source(LAB)), ("eve", target)):
        link = course.submitted(LAB, name)
        link.parent.mkdir(parents=True)
        link.symlink_to(path)
    (course.root / "submitted" / "dan").symlink_to(course.root / "submitted" / "ada")
    pipe = course.submitted(LAB, "pip")
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    gone = course.submitted(LAB, "ian")
    gone.parent.mkdir(parents=True)
    gone.symlink_to(tmp_path / "nothing")
    assert grade_all(course) == dict.fromkeys(("bob", "dan", "eve", "ian", "pip"), "unreadable")
    with pytest.raises(Unreadable, match="is not an ordinary file"):
        read_submission(pipe)
    with pytest.raises(Unreadable, match="is a link"):
        read_submission(course.submitted(LAB, "bob"))


def test_a_time_of_submission_is_read_as_carefully_as_the_notebook(course, tmp_path) -> None:
    """nbgrader opens whatever is there: a pipe has no writer, a device no end."""
    submit(course, "honest", timestamp="2026-01-31 12:00:00 UTC")
    stamps = {name: submit(course, name).with_name("timestamp.txt") for name in ("dev", "dir", "lnk", "pip", "zzz")}
    stamps["dev"].symlink_to("/dev/zero")
    stamps["dir"].mkdir()
    stamps["lnk"].symlink_to(course.submitted(LAB, "honest").with_name("timestamp.txt"))
    os.mkfifo(stamps["pip"])
    stamps["zzz"].write_text(" " * 200 + "2026-01-31 12:00:00 UTC")
    ungraded = {item.student: item for item in grade(course, LAB, course.students(LAB), 1)}
    assert {name: item.outcome for name, item in ungraded.items()} == dict.fromkeys(stamps, "unreadable")
    assert {name: item.reason for name, item in ungraded.items()} == {
        "dev": "timestamp.txt is a link or lies behind one: ask for the file itself",
        "dir": "timestamp.txt cannot be read: Is a directory",
        "lnk": "timestamp.txt is a link or lies behind one: ask for the file itself",
        "pip": "timestamp.txt is not an ordinary file: ask for the file itself",
        "zzz": "timestamp.txt has more than 200 bytes: write one like 2026-01-31 12:00:00 UTC",
    }
    assert check_points(course, "honest") == 1


def test_what_an_answer_sees_of_hidden_cases_reaches_no_page(course) -> None:
    answer = (
        "import os\nr, w = os.pipe()\nos.set_blocking(r, False)\n"
        "def rms(x, dim):\n    os.write(w, f'SEEN {tuple(x.shape)} {dim} {x.dtype};'.encode())\n"
        "    return x.double().pow(2).mean(dim).sqrt().to(x.dtype)"
    )

    def print_it(notebook):
        at = notebook.cells.index(cell_of(notebook, "00-warm-up-check")) + 1
        notebook.cells.insert(at, new_code_cell("try:\n    print(os.read(r, 100_000))\nexcept BlockingIOError: pass"))

    submit(course, "eve", answer, change=print_it)
    assert grade_all(course) == {}
    assert check_points(course, "eve") == 1
    make_feedback(course, LAB)
    page = course.feedback(LAB, "eve").read_text()
    assert page.count("SEEN") == len(exercises.find("00-warm-up").public) + answer.count("SEEN")


def test_markdown_of_a_student_runs_no_script(course) -> None:
    script = "<script>alert(4711)</script><img src=x onerror=alert(4712)> **bold**"

    def write_it(notebook):
        cell_of(notebook, "00-open").source = script
        notebook.cells.append(new_markdown_cell(script))

    submit(course, "mallory", change=write_it)
    assert grade_all(course) == {}
    make_feedback(course, LAB)
    page = course.feedback(LAB, "mallory").read_text()
    assert "<script>alert(4711)" not in page and "<img src=x" not in page and 'onerror="alert' not in page
    assert page.count("<strong>bold</strong>") == 2
    assert "labkit-verdict" in page and "border-left" in page


def test_grades_are_written_again_when_points_due_date_or_database_change(course) -> None:
    submit(course, "ada")
    assert grade_all(course) == {}
    notebook = nbformat.read(course.source(LAB), 4)
    cell_of(notebook, "00-warm-up-check").metadata.nbgrader.points = 7
    nbformat.write(notebook, course.source(LAB))
    from grading.gradebook.setup import release

    release(course, [LAB])
    assert grade_all(course) == {}
    assert check_points(course, "ada") == 7
    (course.root / "gradebook.db").unlink()
    release(course, [LAB])
    assert grade_all(course) == {}
    assert check_points(course, "ada") == 7
