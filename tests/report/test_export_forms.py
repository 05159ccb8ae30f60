"""The forms of nbgrader and Gradescope, and one section at a time: what is written comes back as it was."""

from __future__ import annotations

import csv
import io
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin

from grading.__main__ import main
from grading.course import Course
from grading.errors import UserError
from grading.intake.roster import read_roster
from grading.report.canvas import as_canvas
from grading.report.canvas import read_roster as read_canvas
from grading.report.exported import file_name, only_sections
from grading.report.gather import gather_record
from grading.report.gradescope import as_gradescope
from grading.report.moodle import as_moodle
from grading.report.people import Person
from grading.report.record import ClassRecord
from tests.report.course import COMMA, FORMULA, LAB, SCRIPT, empty_course
from tests.report.test_export_platforms import handin, read, record_of

GRADESCOPES_HEADER = (
    "First Name,Last Name,SID,Email,Sections,02_floats,02_floats - Max Points,02_floats - Submission Time,"
    "02_floats - Lateness (H:M:S),Total Lateness (H:M:S)"
)


def from_gradescope(text: str) -> dict[str, dict[str, tuple[float | None, float]]]:
    """Points and maximum by SID and assignment, as programs do that read Gradescope's downloads: four columns each."""
    header, *rows = read(text)
    first = header.index("Sections") + 1
    assert header[-1] == "Total Lateness (H:M:S)" and (len(header) - 1 - first) % 4 == 0
    at = header.index("SID")
    return {
        row[at]: {
            header[column]: (float(row[column]) if row[column] else None, float(row[column + 1]))
            for column in range(first, len(header) - 1, 4)
        }
        for row in rows
    }


def test_gradescopes_columns_hold_points_times_and_lateness() -> None:
    when = datetime(2026, 3, 3, 2, 3, 4)
    record = record_of(
        handin("ada", 2.5, penalty=1.0, handed_in_at=when, late_s=26 * 3600 + 184),
        handin("bob", 0.0, "not handed in"),
        handin("=eve", 1.0),
    )
    people = {"ada": Person(email="ada@example.edu", first_name="Ada", last_name="=Lovelace")}
    exported = as_gradescope(record, people)
    assert read(exported.text)[0] == GRADESCOPES_HEADER.split(",")
    late = "26:03:04"
    assert read(exported.text)[1] == [
        *("Ada", "'=Lovelace", "ada", "ada@example.edu", "", "1.5", "4", "2026-03-03 02:03:04 +0000"),
        *(late, late),
    ]
    assert from_gradescope(exported.text) == {"ada": {"02_floats": (1.5, 4.0)}, "bob": {"02_floats": (None, 4.0)}}
    why = "left out, because the id looks like a formula or has invisible characters: =eve"
    assert exported.remarks[0] == why
    with pytest.raises(UserError, match="nobody has handed in anything yet: export when there are grades"):
        as_gradescope(ClassRecord("c", ()), {})


def test_every_platforms_file_gives_back_the_same_points(record: ClassRecord) -> None:
    grades = {handin.student: handin.score if handin.state == "graded" else None for handin in record.handins}
    del grades[FORMULA]
    gradescope = from_gradescope(as_gradescope(record, {}).text)
    assert {student: labs[LAB][0] for student, labs in gradescope.items()} == grades
    _, _, *canvas = read(as_canvas(record, {}).text)
    assert {row[3]: float(row[5]) if row[5] else None for row in canvas} == grades
    _, *moodle = read(as_moodle(record, {}, "idnumber").text)
    assert {row[0]: float(row[1]) if row[1] else None for row in moodle} == grades


def test_what_is_written_for_canvas_is_read_as_what_canvas_writes(record: ClassRecord, tmp_path: Path) -> None:
    path = tmp_path / "gradebook.csv"
    people = {student: Person(platform_id=str(n)) for n, student in enumerate(record.students, start=100)}
    path.write_text(as_canvas(record, people).text, newline="")
    roster = read_canvas(path)
    assert roster.find("ada")[1] == people["ada"].platform_id
    assert roster.assignments == (LAB,)
    again = as_canvas(record, {}, roster)
    assert [row[5:] for row in read(again.text)] == [row[5:] for row in read(path.read_text())]


def theirs(course: Course) -> list[list[str]]:
    """What `nbgrader export` writes of this gradebook."""
    out = course.root / "theirs.csv"
    plugin = CsvExportPlugin()
    plugin.to = str(out)
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        plugin.export(gradebook)
    return list(csv.reader(io.StringIO(out.read_text(), newline="")))


def test_the_rows_are_those_of_nbgraders_own_export(course: Course, tmp_path: Path, capsys) -> None:
    shutil.copytree(course.root, tmp_path / "course")
    copy = Course.at(tmp_path / "course")
    with Gradebook(f"sqlite:///{copy.root}/gradebook.db") as gradebook:
        gradebook.update_or_create_student("ada", first_name="Ada", last_name="Lovelace", email="ada@example.edu")
        gradebook.update_or_create_student("absent")
    out = tmp_path / "ours.csv"
    assert main(["export", str(copy.root), "--format", "nbgrader", "--out", str(out)]) == 0
    ours = read(out.read_text())
    known = {COMMA, FORMULA}
    assert ours[0] == theirs(copy)[0]
    # nbgrader does not quote: a comma in an id moves the cells behind it.
    assert sorted(row for row in ours if row[3] not in known) == sorted(
        row for row in theirs(copy) if row[3] not in (FORMULA, COMMA.split(",")[0])
    )
    assert [row[3] for row in ours if row[3] in known] == [COMMA]
    by_student = {row[3]: row for row in ours[1:]}
    assert by_student["ada"][2:7] == ["2026-03-01 10:00:00", "ada", "Lovelace", "Ada", "ada@example.edu"]
    assert by_student["late"][7:] == ["4.5", "3.0", "1.5", "5.0"] and by_student["absent"][9] == "0.0"
    assert by_student[SCRIPT][3] == SCRIPT
    told = capsys.readouterr().out
    assert f"left out, because the id looks like a formula or has invisible characters: {FORMULA}" in told
    assert "what was not handed in has 0 points here, as in nbgrader's own export" in told


ROSTER = "student;name;Section\nada;Ada Lovelace;A\nlate;1;B\nhidden;A;A\ntorn;;\n"


def test_a_section_is_no_name_and_a_name_no_section(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(ROSTER)
    roster = read_roster(tmp_path / "roster.csv")
    assert roster.sections == {"ada": "A", "late": "B", "hidden": "A"}
    assert set(roster.known) == {"ada", "adalovelace", "late", "1", "hidden", "a", "torn"}
    assert roster.known["a"] == {"hidden"}


def test_reports_and_exports_of_one_section(course: Course, tmp_path: Path, capsys) -> None:
    shutil.copytree(course.root, tmp_path / "course")
    copy = Course.at(tmp_path / "course")
    root = str(copy.root)
    assert main(["report", root, "--section", "A"]) == 2
    said = capsys.readouterr().err
    assert 'nobody here is in section "A": give roster.csv in the course\'s folder a column section' in said
    (copy.root / "roster.csv").write_text(ROSTER)
    record = gather_record(copy)
    assert record.section_names == ("A", "B")
    assert record.of_section("A").students == ("ada", "hidden")
    assert record.of_section("A").name == "numerics, section A"
    assert set(record.of_section(None).students) == set(record.students) - {"ada", "late", "hidden"}
    assert [total.student for total in only_sections(record, ["B", "A"]).totals()] == ["ada", "hidden", "late"]
    out = tmp_path / "out"
    assert main(["report", root, "--section", "A", "--out", str(out)]) == 0
    assert "numerics, section A" in out.read_text() and ">late<" not in out.read_text()
    for name, at, whom in (("nbgrader", 3, ["ada", "hidden"]), ("gradescope", 2, ["ada", "hidden"])):
        assert main(["export", root, "--format", name, "--section", "A", "--out", str(out)]) == 0
        assert [row[at] for row in read(out.read_text())[1:]] == whom
    assert main(["export", root, "--format", "gradescope", "--out", str(out)]) == 0
    assert {row[2]: row[4] for row in read(out.read_text())[1:]}["late"] == "B"
    # Without --out, what is about a part does not take the place of what is about all.
    assert main(["report", root]) == 0 and main(["export", root]) == 0
    before = {name: (copy.root / name).read_bytes() for name in ("report.html", "grades.csv")}
    assert main(["report", root, "--section", "A"]) == 0
    assert main(["export", root, "--lab", "00", "--section", "A", "--section", "B"]) == 0
    assert {name: (copy.root / name).read_bytes() for name in before} == before
    assert "numerics, section A" in (copy.root / "report-A.html").read_text()
    assert (copy.root / "grades-00-A-B.csv").is_file()
    assert file_name("grades", ".csv", "moodle", "../Group A/b") == "grades-moodle-.._Group_A_b.csv"
    assert main(["export", root, "--section", "C"]) == 2
    assert 'nobody here is in section "C": there are: A, B' in capsys.readouterr().err
    assert empty_course(tmp_path / "empty") and main(["export", str(tmp_path / "empty"), "--format", "gradescope"]) == 2
