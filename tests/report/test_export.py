"""The table of grades: it survives a round trip, and no program runs what stands in it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.course import Course
from grading.report.csv_table import COLUMNS, FORMULA_STARTS, as_csv
from grading.report.record import ClassRecord, Handin, Item, LabRecord, Mark
from grading.terminal import one_line
from tests.report.course import COMMA, FORMULA, LAB, empty_course

NASTY = (
    "=1+1",
    "+49 170",
    "-rf",
    "@me",
    "\tx",
    "\rx",
    "\nx",
    "a,b",
    'say "hi"',
    "two\nlines",
    "李雷",
    "semi;colon",
    "x",
)


def _read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _record(*handins: Handin) -> ClassRecord:
    return ClassRecord("c", (LabRecord("02_floats", "Floats", handins[0].marks and (), handins),))


def _handin(student: str, score: float | None = 1.0, penalty: float = 0.0, hint: str | None = None) -> Handin:
    item = Item("02-x", "02-x-check", "exercise", "X", 4.0)
    return Handin(student, "02_floats", "graded", (Mark(item, score, "failed", hint),), penalty)


def test_every_student_and_exercise_has_a_row(record: ClassRecord) -> None:
    rows = _read(as_csv(record))
    assert tuple(rows[0]) == COLUMNS
    scored = [row for row in rows if row["exercise"] != "late penalty"]
    assert len(scored) == len(record.students) * 3
    torn = [row for row in rows if row["student"] == "torn"]
    assert {row["score"] for row in torn} == {""}
    assert {row["outcome"] for row in torn} == {"unreadable"}
    (comma,) = [row for row in rows if row["student"] == COMMA and row["exercise"] == "00-warm-up"]
    assert (comma["score"], comma["max_score"], comma["outcome"]) == ("0", "1", "failed")
    assert "dim" in comma["hint"]
    (hidden,) = [row for row in rows if row["student"] == "hidden" and row["exercise"] == "00-warm-up"]
    assert hidden["hint"].startswith("(hidden cases) ")


def test_scores_add_up_to_the_total(record: ClassRecord) -> None:
    rows = _read(as_csv(record))
    for handin in record.handins:
        theirs = [row["score"] for row in rows if row["student"].lstrip("'") == handin.student]
        if handin.score is not None:
            assert sum(map(float, theirs)) == pytest.approx(handin.score)


@pytest.mark.parametrize("name", NASTY)
def test_a_text_comes_back_and_is_no_formula(name: str) -> None:
    (row,) = _read(as_csv(_record(_handin(name, hint=name))))
    for value in (row["student"], row["hint"]):
        assert not value.startswith(FORMULA_STARTS)
        assert value.replace("'", "") == one_line(name).replace("'", "")


@pytest.mark.parametrize("name", ["a;=1+1", "a; =1", 'a";"=1', "a;-b", "=1;+2;@3", "a;\uff1d1", "a;\t=1", "a;\n=1"])
def test_a_table_that_is_cut_at_semicolons_has_no_formula_either(name: str) -> None:
    """As spreadsheets cut it where numbers have a decimal comma; quotes hold only where they begin a line."""
    text = as_csv(_record(_handin(name, hint=name)))
    for line in text.splitlines():
        for cell in line.split(";"):
            assert not cell.lstrip(' "').startswith(FORMULA_STARTS), line


def test_numbers_stay_numbers() -> None:
    first, second = _read(as_csv(_record(_handin("ada", 0.1 + 0.2, penalty=0.1))))
    assert (first["score"], first["max_score"]) == ("0.3", "4")
    assert (second["exercise"], second["score"], second["outcome"]) == ("late penalty", "-0.1", "late")


def test_a_penalty_takes_no_more_than_there_is() -> None:
    rows = _read(as_csv(_record(_handin("ada", 1.0, penalty=3.0))))
    assert [row["score"] for row in rows] == ["1", "-1"]


def test_the_command(course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new folder" / "grades.csv"
    assert main(["export", str(course.root), "--format", "csv", "--out", str(out)]) == 0
    assert FORMULA in out.read_text(encoding="utf-8")
    assert str(out) in capsys.readouterr().out
    assert [path.name for path in out.parent.iterdir()] == ["grades.csv"]


@pytest.mark.slow
def test_an_empty_class_is_a_header(tmp_path: Path) -> None:
    course = empty_course(tmp_path / "empty")
    assert main(["export", str(course.root)]) == 0
    assert (course.root / "grades.csv").read_text().strip() == ",".join(COLUMNS)
    assert LAB in {lab.name for lab in (course.root / "source").iterdir()}


def test_a_place_that_cannot_be_written(course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("kept")
    assert main(["export", str(course.root), "--out", str(tmp_path / "file" / "grades.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "kept"


def test_no_course(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path)]) == 2
    assert "not a course folder" in capsys.readouterr().err
