"""Submissions that once stopped a batch, earned what they should not, or read what was hidden; none does any more."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell

from grading.course import Course
from grading.errors import UserError
from grading.files import Unreadable
from grading.gradebook.feedback import make_feedback
from grading.rebuild import read_submission
from grading.rebuild.dependencies import needed
from grading.results import read_ungraded
from grading.supervisor.attempts import run_steps
from grading.supervisor.cases import public_cases
from grading.supervisor.job import Job
from grading.supervisor.limits import CellLimits
from grading.supervisor.result import ExerciseResult
from grading.supervisor.verdicts import disguises
from labkit import exercises
from labkit.check.judge import judge
from labkit.check.verdict import Verdict
from labkit.forbids import find_forbidden
from labkit.oracles import oracle_of
from labkit.spec import Case, Hint, Observation, Oracle
from tests.grading.lessons import LAB, SOLUTION, cell_of, grade, make_course, submit
from tests.grading.test_course import points
from tests.grading.test_worker import DOUBLE, GOOD, code, exercise, graded

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


# --- the batch ends with all honest students graded


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


def test_a_result_that_the_judge_stumbles_over_is_suspected(sandbox, monkeypatch) -> None:
    def stumble(*_args, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr("grading.supervisor.verdicts.judge", stumble)
    found = graded(sandbox, code("99-double", GOOD), DOUBLE).exercises["99-double"]
    assert (found.outcome, found.score) == ("suspected", 0.0)


def test_cells_cannot_take_more_than_their_time_together(sandbox) -> None:
    steps = [code(f"c{n}", "import time; time.sleep(0.2)") for n in range(40)]
    transcript = run_steps(sandbox, steps, {}, CellLimits(one_s=0.5, all_s=1.0, submission_s=3.0))
    assert len(transcript.cells) == 40
    # Each takes a fifth of the second that all have; on a busy machine, longer.
    assert sum(cell.ok for cell in transcript.cells.values()) <= 5


def test_the_time_that_a_cell_was_allowed_is_named(sandbox) -> None:
    def cut(*seconds: float, **limits: float) -> str:
        steps = [code(f"c{n}", f"import time; time.sleep({wait})") for n, wait in enumerate(seconds)]
        return list(run_steps(sandbox, steps, {}, CellLimits(**limits)).cells.values())[-1].error

    began = r"it did not finish within \d\.?\d? s of wall time"
    assert re.fullmatch(rf"{began}: the cell was skipped", cut(9, one_s=0.5))
    left_by_cells = rf"{began}, which the cells before it left of 3 s: the cell was skipped"
    assert re.fullmatch(left_by_cells, cut(0.5, 9, one_s=2.9, all_s=3.0))
    left_of_all = rf"{began}, which were left of the notebook's 2 s: the cell was skipped"
    assert re.fullmatch(left_of_all, cut(9, one_s=9.0, all_s=9.0, submission_s=2.0))


def test_honest_threads_do_not_use_up_the_time_of_other_exercises(sandbox) -> None:
    slow = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    other = [code("99-slow", "def slow(x): return x"), exercise("99-slow")]
    result = graded(sandbox, code("a", slow + "time.sleep(0.5)"), code("99-double", GOOD), DOUBLE, *other)
    assert [item.outcome for item in result.exercises.values()] == ["passed", "passed"]


def test_printed_text_is_capped_over_all_cells(sandbox) -> None:
    steps = [code(f"c{n}", "print('x' * 60_000)") for n in range(30)]
    transcript = run_steps(sandbox, steps, {}, CellLimits(printed=100_000))
    assert sum(len(cell.printed) for cell in transcript.cells.values()) < 102_000


def test_cells_that_run_again_print_in_the_place_of_what_they_printed(sandbox) -> None:
    linger = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    steps = [code("a", linger), code("b", "print('x' * 30_000)"), code("99-double", GOOD), DOUBLE]
    steps += [code("99-slow", "def slow(x): return x"), exercise("99-slow"), code("c", "print('y' * 30_000)")]
    asked = {name: public_cases(exercises.find(name)) for name in ("99-double", "99-slow")}
    transcript = run_steps(sandbox, steps, asked, CellLimits(printed=70_000))
    assert not any(run.trouble for runs in transcript.exercises.values() for run in runs)
    assert [len(transcript.cells[name].printed) for name in "bc"] == [30_001, 30_001]


# --- no point that the honest equivalent would not earn


def test_a_name_that_an_answer_hides_is_a_persons_to_look_at() -> None:
    hides = "import math\ndef naive_sum(x):\n    return getattr(math, 'f' + 'sum')(x)"
    job = Job("02_float_formats", "ada", "1", (), (hides,), (), b"")
    passed = Verdict("02-sums", "passed", 1.0, "right")
    (note,) = disguises(job, {"02-sums": ExerciseResult(passed, passed)})
    assert note.startswith("02-sums forbids calls by name") and "getattr, line 3: return getattr(math" in note
    failed = ExerciseResult(Verdict("02-sums", "failed", 0.0, "wrong"), None)
    assert disguises(job, {"02-sums": failed}) == []


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "%matplotlib inline\n{}",
        "!true\n{}",
        "if True:\n{indented}",
        "try:\n{indented}\nfinally:\n    pass",
        "for _ in range(1):\n{indented}",
    ],
)
def test_a_forbidden_call_is_found_however_its_cell_is_dressed(wrap: str) -> None:
    from grading.rebuild.merge import _plain_python

    source = "import math\ndef naive_sum(x):\n    return math.fsum(x)"
    dressed = wrap.format(source, indented="\n".join("    " + line for line in source.splitlines()))
    assert find_forbidden([_plain_python(dressed)], ["naive_sum"], ("math.fsum",)).name == "math.fsum"


def test_both_branches_of_a_definition_are_read() -> None:
    source = "import math\nif 1:\n    def f(x): return math.fsum(x)\nelse:\n    def f(x): return 0"
    assert find_forbidden([source], ["f"], ("math.fsum",))


def test_reading_a_program_takes_no_longer_than_its_length_warrants() -> None:
    names = ", ".join(f"a{n}" for n in range(3000))
    source = f"{names} = {names}\ndef f(x): return a0"
    began = time.process_time()
    assert find_forbidden([source], ["f"], ("math.fsum",)) is None
    assert needed([("demo", "a1 = 1")], [source]) == {"demo"}
    assert time.process_time() - began < 5


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


def test_no_runs_are_no_pass() -> None:
    warm_up = exercises.find("00-warm-up")
    verdict = judge(warm_up, oracle_of("00-warm-up"), [], n_cases=7)
    assert verdict.score == 0 and dict(verdict.rows)["problem"] == "not every case was run"


def test_a_giant_result_is_wrong_without_a_diagnosis() -> None:
    """Broadcast against what it should have been, it could take all memory."""
    seen = []
    hints = (Hint(seen.append, "?"),)
    small = {"x": torch.zeros(4)}
    for expect, n, looked_at in (
        (lambda run: {"out": run.tree["x"]}, 4, True),
        (lambda run: {"out": run.tree["x"]}, 5, True),
        (lambda run: {"out": run.tree["x"]}, 100_000, False),
        (lambda run: {"out": torch.zeros(3_000_000)}, 3_000_000, True),
        (None, 100_000, True),
        (None, 3_000_000, False),
    ):
        seen.clear()
        oracle = Oracle("x", expect=expect, judge=(lambda run: "no",), diagnose=hints)
        run = Observation(Case(), small, got={"out": torch.ones(n)}, back=small)
        assert judge(exercises.find("00-warm-up"), oracle, [run]).score == 0
        assert bool(seen) == looked_at, n


def test_a_forged_word_about_threads_does_not_begin_again_for_ever(sandbox) -> None:
    forged = """
import grading.worker.job as job
def lie(channel, *args, **kwargs):
    channel.send("threads")
    return False
job._run_exercise = lie
"""
    began = time.monotonic()
    found = graded(sandbox, code("a", forged), code("99-double", GOOD), DOUBLE).exercises["99-double"]
    assert (found.outcome, time.monotonic() - began < 90) == ("limit", True)


# --- hidden cases stay hidden, and texts stay texts


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


# --- a written grade follows what it rests on


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
