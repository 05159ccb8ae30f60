"""The leaderboard of a really graded contest: who has which place, under which name, and who has none."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.course import Course
from grading.log import Log
from grading.pseudonym import pseudonym_of
from grading.report.csv_table import FORMULA_STARTS
from tests.board.contest import EVIL, EXERCISE, FORMULA, LAB, empty_contest, graded, hand_in, script
from tests.report.test_report_page import Page

pytestmark = pytest.mark.full("classroom")


def board(course: Course, capsys: pytest.CaptureFixture[str], *words: str, machine: str = "basement", code: int = 0):
    """The rows of a machine's CSV, by place and name, and what the command says."""
    capsys.readouterr()
    assert main(["leaderboard", str(course.root), *words]) == code
    text = (course.root / f"leaderboard-{machine}.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    return {row["name"]: row for row in rows}, capsys.readouterr().out


def places(rows: dict[str, dict[str, str]]) -> dict[str, str]:
    return {name: row["place"] for name, row in rows.items()}


def names(course: Course, *students: str) -> list[str]:
    return [pseudonym_of(course, student) for student in students]


def test_the_fewest_hours_come_first_and_equal_ones_share_a_place(course: Course, capsys) -> None:
    rows, told = board(course, capsys)
    ida, ada, bob, fay = names(course, "ida", "ada", "bob", "=fay")
    assert places(rows) == {ida: "1", ada: "2", bob: "2", fay: "4"}
    assert [rows[name]["shared_by"] for name in (ida, ada, bob, fay)] == ["1", "2", "2", "1"]
    assert (rows[ida]["virtual_hours"], rows[ada]["virtual_hours"]) == ("0.5", "0.6")
    assert rows[ada]["declared_steps"] == "60" and len(rows[ada]["digest"]) == 16
    assert "2, shared by 2 entries" in told
    other, _ = board(course, capsys, machine="v100")
    assert places(other) == {ada: "1"}
    assert "quad: no entry yet" in told


def test_what_is_doubted_or_worth_nothing_has_no_place(course: Course, capsys) -> None:
    rows, told = board(course, capsys)
    assert not set(rows) & set(names(course, "eve", "gus", "hal"))
    assert re.search(r"eve: submission [0-9a-f]{12} is suspected, and has no place", told)
    assert not re.search(r"\b(gus|hal)\b", told)


def test_a_person_who_gives_no_points_takes_every_place(course: Course, capsys) -> None:
    with sqlite3.connect(course.root / "gradebook.db") as database:
        cell = f"{EXERCISE}-check"
        rows = database.execute(
            "update grade set manual_score = 0 where id in (select grade.id from grade "
            "join base_cell on grade.cell_id = base_cell.id "
            "join submitted_notebook on grade.notebook_id = submitted_notebook.id "
            "join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id "
            "where base_cell.name = ? and submitted_assignment.student_id = 'ida')",
            (cell,),
        )
        assert rows.rowcount == 1
    rows, told = board(course, capsys)
    assert pseudonym_of(course, "ida") not in rows
    assert f"ida: a person gave {EXERCISE} no points, so no entry of theirs has a place" in told


def test_after_the_freeze_an_earlier_entry_stands(course: Course, capsys) -> None:
    ida, ada, bob, fay = names(course, "ida", "ada", "bob", "=fay")
    rows, told = board(course, capsys, "--until", "2026-03-05")
    assert places(rows) == {ada: "1", bob: "1", ida: "3", fay: "4"}
    assert re.search(r"ida: the entry [0-9a-f]{16} was handed in after the freeze", told)
    page = (course.root / "leaderboard-basement.html").read_text()
    assert "up to 2026-03-05 23:59:59 UTC" in page
    rows, _ = board(course, capsys, "--until", "2026-03-09 11:00 Europe/Berlin")
    assert places(rows)[ida] == "1"
    rows, _ = board(course, capsys, "--until", "2026-03-09 10:59 Europe/Berlin")
    assert places(rows)[ida] == "3"
    assert main(["leaderboard", str(course.root), "--until", "2026-02-01"]) == 0
    assert "basement: no entry yet" in capsys.readouterr().out
    assert "Nobody has an entry on this machine yet" in (course.root / "leaderboard-v100.html").read_text()


def test_where_no_time_is_noted_the_moment_of_the_grade_counts(course: Course, capsys) -> None:
    hand_in(course, "joe", script(30))
    (course.submitted(LAB, "joe").parent / "timestamp.txt").unlink()
    graded(course, "joe")
    rows, told = board(course, capsys, "--until", "2026-03-10")
    assert pseudonym_of(course, "joe") not in rows
    assert re.search(r"joe: the entry \w+ was graded \(when it was handed in is not noted\) after the freeze", told)
    rows, _ = board(course, capsys)
    assert places(rows)[pseudonym_of(course, "joe")] == "1"


def test_names_are_the_course_s_own_and_tell_nobody(course: Course, capsys, tmp_path: Path) -> None:
    students = ("ada", "bob", "ida", "=fay")
    mine = names(course, *students)
    assert all(re.fullmatch(r"[a-z]+-[a-z]+-[0-9a-z]{5}", name) for name in mine) and len(set(mine)) == 4
    assert mine == names(course, *students)
    assert main(["leaderboard", str(course.root)]) == 0
    for path in course.root.glob("leaderboard-*"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\b(ada|bob|ida|fay)\b", text), path
        assert not re.search(r"2026-03-0[12]", text), "when somebody handed in could tell who it is"
    key = course.root / ".grading" / "course.key"
    key.chmod(0o600)
    key.write_bytes(bytes(reversed(key.read_bytes())))
    assert not set(names(course, *students)) & set(mine)


def test_the_instructor_can_say_what_somebody_is_called(course: Course, capsys) -> None:
    assert main(["leaderboard", str(course.root), "--who", "ada"]) == 0
    told = capsys.readouterr().out
    assert re.search(rf"ada +{pseudonym_of(course, 'ada')}\n", told) and not re.search(r"\bida\b", told)
    assert main(["leaderboard", str(course.root), "--who"]) == 0
    told = capsys.readouterr().out
    assert all(pseudonym_of(course, student) in told for student in course.students(LAB))
    assert not list(course.root.glob("leaderboard-*"))


def test_texts_of_students_are_text(course: Course, capsys) -> None:
    rows, _ = board(course, capsys)
    bob, fay = names(course, "bob", "=fay")
    assert rows[fay]["changed"] == f"'{FORMULA}" and rows[bob]["changed"] == EVIL
    assert not any(value.startswith(FORMULA_STARTS) for row in rows.values() for value in row.values())
    page = Page((course.root / "leaderboard-basement.html").read_text(encoding="utf-8"))
    assert page.open == [] and EVIL in page.text and FORMULA in page.text
    assert not {tag for tag, _ in page.tags} & {"img", "script", "a", "link", "iframe", "form"}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_gpu_times_stand_beside_and_change_no_place(course: Course, capsys) -> None:
    before, _ = board(course, capsys)
    ida, ada, bob, fay = names(course, "ida", "ada", "bob", "=fay")
    (course.root / "gpu_times.csv").write_text(
        f"digest,gpu,seconds\n{before[fay]['digest']},=NVIDIA H200,0.5\n{before[ida]['digest']},NVIDIA H200,many\n"
        f"feedfeedfeedfeed,NVIDIA H200,1\n{before[ada]['digest']},NVIDIA H200,12.25\n"
    )
    rows, told = board(course, capsys)
    assert places(rows) == places(before)
    assert (rows[ada]["gpu"], rows[ada]["gpu_seconds"]) == ("NVIDIA H200", "12.25")
    assert rows[fay]["gpu"] == "'=NVIDIA H200" and rows[ida]["gpu"] == "" == rows[bob]["gpu"]
    assert 'gpu_times.csv, row 3: "many" is no number of seconds; the row is left out' in told
    assert 'gpu_times.csv, row 4: no entry has the digest "feedfeedfeedfeed"; the row is left out' in told
    assert "GPU, not ranked" in (course.root / "leaderboard-basement.html").read_text()
    (course.root / "gpu_times.csv").write_text("digest,seconds\nx,1\n")
    assert main(["leaderboard", str(course.root)]) == 2
    assert 'has no column "gpu": let its first line be: digest, gpu, seconds' in capsys.readouterr().err


def test_the_same_script_of_two_students_is_named(course: Course, capsys) -> None:
    hand_in(course, "zed", script(60, changed="fewer steps"))
    graded(course, "zed")
    _, told = board(course, capsys)
    assert re.search(r"the same script \([0-9a-f]{16}\) is from ada and zed", told)


def stored(course: Course, student: str) -> Path:
    """The stored result of a student's newest submission."""
    *_, last = [e for e in Log(course).entries() if e.kind == "graded" and e.facts["student"] == student]
    return course.result(LAB, last.facts["job"])


def test_scripts_are_published_after_the_freeze_and_not_before(course: Course, capsys, tmp_path: Path) -> None:
    for words in ((), ("--until", "2999-01-01")):
        assert main(["leaderboard", str(course.root), "--scripts", *words]) == 2
        told = capsys.readouterr().err
        assert "scripts are published when nothing can be entered any more: name the freeze with --until" in told
    assert not list(course.root.glob("leaderboard*"))
    rows, _ = board(course, capsys, "--scripts", "--until", "2026-03-10")
    folder = course.root / "leaderboard-scripts"
    digests = {row["digest"] for row in rows.values()}
    assert {path.stem for path in folder.iterdir()} > digests, "and that of the other machine"
    (ida,) = names(course, "ida")
    assert (folder / f"{rows[ida]['digest']}.py").read_text() == script(50, changed="half the steps")
    page = Page((course.root / "leaderboard-basement.html").read_text(encoding="utf-8"))
    links = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert links == {f"./leaderboard-scripts/{digest}.py" for digest in digests}
    path = stored(course, "ida")
    result = json.loads(path.read_text())
    result["exercises"][EXERCISE]["hidden"]["record"]["entry"]["digest"] = "0123456789abcdef"
    path.write_text(json.dumps(result))
    _, told = board(course, capsys, "--scripts", "--until", "2026-03-10")
    assert "ida: the script 0123456789abcdef is not published: its text has another digest" in told
    assert not (folder / "0123456789abcdef.py").exists()
    shutil.rmtree(course.root / ".grading" / "submissions" / LAB)
    _, told = board(course, capsys, "--scripts", "--until", "2026-03-10")
    assert told.count("is not published: ") == 5


def test_verify_finds_every_score_as_it_is(course: Course, capsys) -> None:
    rows, told = board(course, capsys, "--verify", "--isolation", "none", "--workers", "1")
    assert len(rows) == 4
    assert "5 of 5 scores come out exactly when the scripts are played again." in told
    assert "Every loss agrees to the last bit." in told
    assert re.search(r"Played again with Python 3\.\d+\.\d+, torch \S+, numpy \S+; (as|unlike) the lock file", told)
    assert re.search(r"The losses were judged on .+, and this time on .+\.", told)
    assert "5 of 5 scores come out exactly" in (course.root / "leaderboard-basement.html").read_text()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"virtual_hours": 0.1}, "virtual_hours is 0.1 as stored, and 0.5 from the script"),
        ({"changed": "magic"}, 'changed is "magic" as stored, and "half the steps" from the script'),
        ({"peak_bytes": {"parameters": 2**30}}, "peak_bytes is parameters 1,073,741,824 as stored, and activations"),
        ({"losses": {"8": 1.5}}, "it was trained on other seeds"),
    ],
)
def test_verify_names_a_changed_score_and_takes_its_place(course: Course, capsys, change: dict, problem: str) -> None:
    path = stored(course, "ida")
    result = json.loads(path.read_text())
    result["exercises"][EXERCISE]["hidden"]["record"]["entry"] |= change
    path.write_text(json.dumps(result))
    ida = pseudonym_of(course, "ida")
    assert ida in board(course, capsys)[0]
    rows, told = board(course, capsys, "--verify", "--isolation", "none", "--workers", "1", code=1)
    assert re.search(rf"ida \({ida}\), basement, entry [0-9a-f]{{16}}: {re.escape(problem)}", told), told
    assert ida not in rows and places(rows)[pseudonym_of(course, "ada")] == "1"
    assert "4 of 5 scores come out exactly" in told


def test_verify_says_where_a_submission_is_gone(course: Course, capsys) -> None:
    shutil.rmtree(course.root / ".grading" / "submissions" / LAB)
    rows, told = board(course, capsys, "--verify", "--isolation", "none", "--workers", "1", code=1)
    assert rows == {} and told.count("its submission cannot be read") == 5
    assert "0 of 5 scores come out exactly" in told


def test_what_is_missing_is_said(course: Course, capsys, tmp_path: Path) -> None:
    def error(*words: str) -> str:
        capsys.readouterr()
        assert main(["leaderboard", *words]) == 2
        return capsys.readouterr().err

    root = str(course.root)
    assert "is not a course folder: set one up: python -m grading course" in error(str(tmp_path / "nowhere"))
    assert 'there is no machine "abacus": there are: basement, v100, quad, slice' in error(root, "--machine", "abacus")
    assert '--until: "soon" is no date: write one like 2026-03-09' in error(root, "--until", "soon")
    assert "no script can be played without a worker: give --workers 1" in error(root, "--verify", "--workers", "0")
    fresh = empty_contest(tmp_path / "fresh")
    assert f"nobody's work in {LAB} is graded yet: collect submissions, and grade them" in error(str(fresh.root))
    assert "nobody has handed in the capstone yet: name students: --who ada" in error(str(fresh.root), "--who")
    assert not list(course.root.glob("leaderboard-*"))


def test_one_machine_alone_in_another_folder(course: Course, capsys, tmp_path: Path) -> None:
    out = tmp_path / "new"
    assert main(["leaderboard", str(course.root), "--machine", "v100", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["leaderboard-v100.csv", "leaderboard-v100.html"]
    assert not list(course.root.glob("leaderboard-*"))


def test_the_feedback_page_tells_each_student_their_name(course: Course) -> None:
    assert main(["feedback", str(course.root), LAB]) == 0
    for student in ("ada", "ida"):
        told = course.feedback(LAB, student).read_text(encoding="utf-8")
        assert f"On the leaderboard you are called <b>{pseudonym_of(course, student)}</b>" in told
    for student in ("eve", "hal"):
        assert "leaderboard" not in course.feedback(LAB, student).read_text(encoding="utf-8")
