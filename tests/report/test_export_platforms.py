"""The files for Canvas and Moodle, read back as those platforms read them: nobody's points end up with another."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.course import Course
from grading.errors import UserError
from grading.report.canvas import CanvasRoster, as_canvas, read_roster
from grading.report.csv_table import FORMULA_STARTS, text
from grading.report.moodle import as_moodle
from grading.report.people import Person, read_people
from grading.report.record import ClassRecord, Handin, Item, LabRecord, Mark
from tests.report.course import COMMA, FORMULA, LAB, SCRIPT, empty_course

ITEM = Item("02-x", "02-x-check", "exercise", "X", 4.0)
ROSTER_HEADER = "Student,ID,SIS User ID,SIS Login ID,Section,{columns},Current Score\n"


def handin(student: str, score: float | None = 1.0, state: str = "graded", **more: object) -> Handin:
    mark = Mark(ITEM, score, more.pop("outcome", "failed"), more.pop("hint", None), **more.pop("mark", {}))
    return Handin(student, "02_floats", state, (mark,), **more)


def record_of(*handins: Handin) -> ClassRecord:
    return ClassRecord("c", (LabRecord("02_floats", "Floats", (ITEM,), handins),))


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def canvas_import(text: str) -> dict[str, list[str]]:
    """By SIS Login ID, the assignments' cells, as Canvas's importer finds them."""
    header, *rows = read(text)
    assert "Student" in header[0] and header[1] == "ID" and header[4] == "Section"
    assert [header[2], header[3]] == ["SIS User ID", "SIS Login ID"]
    points, *students = rows
    assert "Points Possible" in points[0]
    assert not any("Points Possible" in row[0] for row in students)
    assert all(len(row) == len(header) for row in rows)
    return {row[3]: row[5:] for row in students}


def test_canvas_gets_every_student_with_points_after_the_penalty(record: ClassRecord) -> None:
    exported = as_canvas(record, {})
    found = canvas_import(exported.text)
    assert read(exported.text)[0][5:] == [LAB] and read(exported.text)[1][5:] == ["5"]
    assert set(found) == set(record.students) - {FORMULA}
    assert found["ada"] == ["3"] and found[COMMA] == ["2"] and found[SCRIPT] == ["0"]
    assert found["late"] == ["1.5"], "the penalty takes what the grader gave, and a person gave 1.5 after it"
    assert found["torn"] == [""] and found["afterwards"] == [""], "no grade is no zero"
    assert exported.remarks[0].endswith(f": {FORMULA}")
    assert any(text.startswith("not final") and "ada (00_warm_up)" in text for text in exported.remarks)


def test_what_was_not_handed_in_is_blank_and_not_zero() -> None:
    record = record_of(handin("ada", 2.5, penalty=1.0), handin("bob", 0.0, "not handed in"), handin("eve", 0.0))
    assert canvas_import(as_canvas(record, {}).text) == {"ada": ["1.5"], "bob": [""], "eve": ["0"]}
    rows = read(as_moodle(record, {}, "idnumber").text)
    assert rows == [["ID number", "02_floats"], ["ada", "1.5"], ["bob", ""], ["eve", "0"]]


def test_canvas_knows_names_and_ids_where_the_gradebook_does() -> None:
    people = {"ada": Person("=Lovelace, Ada", "ada@example.edu", "4711"), "bob": Person("", "", "abc")}
    rows = read(as_canvas(record_of(handin("ada"), handin("bob")), people).text)
    assert rows[2:] == [["'=Lovelace, Ada", "4711", "", "ada", "", "1"], ["bob", "", "", "bob", "", "1"]]


def test_a_student_who_looks_like_a_heading_is_left_out() -> None:
    exported = as_canvas(record_of(handin("Points Possible"), handin("ada")), {})
    assert set(canvas_import(exported.text)) == {"ada"}
    assert "Points Possible" in exported.remarks[0]


def roster_file(
    path: Path, *rows: str, columns: str = '"Floats (98765)",Other (1)', encoding: str = "utf-8-sig"
) -> Path:
    notes = ["    Points Possible,,,,,4,10,(read only)", ",,,,,Manual Posting,,"]
    path.write_text(ROSTER_HEADER.format(columns=columns) + "\n".join([*notes, *rows]) + "\n", encoding="utf-8-sig")
    return path


def test_a_roster_gives_canvas_its_own_columns_back(tmp_path: Path) -> None:
    path = roster_file(
        tmp_path / "roster.csv",
        '"Lovelace, Ada",11,u-1,ADA,"Sec ""A""",,,',
        "Babbage,12,bob,charles,B,,,",
        "=Twin,13,u-3,twin,B,,,",
        "Twin,14,u-4,twin,B,,,",
        "Away,15,u-5,away,B,3,,",
    )
    record = record_of(handin("ada", 3.0), handin("bob", 2.0), handin("twin"), handin("ghost"))
    exported = as_canvas(record, {}, read_roster(path))
    rows = read(exported.text)
    assert rows[0][5:] == ["Floats (98765)"], "Canvas's own column of that title"
    assert rows[2:] == [
        ["Lovelace, Ada", "11", "u-1", "ADA", 'Sec "A"', "3"],
        ["Babbage", "12", "bob", "charles", "B", "2"],
    ]
    assert (
        exported.remarks[0]
        == "left out, because the roster does not have exactly one student with that id: ghost, twin"
    )


def test_one_person_of_the_roster_gets_the_points_of_one_student(tmp_path: Path) -> None:
    path = roster_file(tmp_path / "roster.csv", "Ada,11,u-1,ada,A,,,")
    exported = as_canvas(record_of(handin("ada", 3.0), handin("u-1", 1.0)), {}, read_roster(path))
    assert [row[3:] for row in read(exported.text)[2:]] == [["ada", "A", "3"]]
    assert exported.remarks[0].endswith(": u-1")


def test_a_lab_that_canvas_does_not_know_is_said(tmp_path: Path) -> None:
    path = roster_file(tmp_path / "roster.csv", "Ada,11,u-1,ada,A,,,", columns="Essay (5),Other (1)")
    exported = as_canvas(record_of(handin("ada")), {}, read_roster(path))
    assert exported.remarks == ("new to Canvas, which will ask what to do with it: 02_floats",)


def test_a_roster_with_semicolons_and_few_columns(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text("Student;ID;SIS Login ID;Section;02_floats (7)\nPoints Possible;;;;4\nÅda;11;ada;A;2,5\n")
    roster = read_roster(path)
    assert roster == CanvasRoster(
        ("Student", "ID", "SIS Login ID", "Section"), (("Åda", "11", "ada", "A"),), ("02_floats (7)",)
    )
    assert read(as_canvas(record_of(handin("ada")), {}, roster).text)[2] == ["Åda", "11", "ada", "A", "1"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", 'has no columns "ID", "SIS Login ID" and "Section"'),
        (b"name,grade\nada,1\n", 'has no columns "ID", "SIS Login ID" and "Section"'),
        (b"\xff\xfe\x00", "it is not UTF-8 text"),
        (None, "No such file"),
    ],
)
def test_what_is_no_roster_is_refused(tmp_path: Path, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / "roster.csv").write_bytes(content)
    with pytest.raises(UserError, match="Canvas") as raised:
        read_roster(tmp_path / "roster.csv")
    assert problem in str(raised.value)


def test_moodle_finds_people_by_the_field_that_was_asked_for() -> None:
    people = {"ada": Person(email="ada@example.edu"), "bob": Person()}
    record = record_of(handin("ada"), handin("bob"), handin("eve@example.edu"), handin("=x@y"))
    exported = as_moodle(record, people, "email")
    assert read(exported.text) == [["Email address", "02_floats"], ["ada@example.edu", "1"], ["eve@example.edu", "1"]]
    assert exported.remarks[0].endswith(": =x@y, bob") or exported.remarks[0].endswith(": bob, =x@y")
    assert read(as_moodle(record, people, "username").text)[0][0] == "Username"


def test_moodle_comments_say_what_a_student_may_know() -> None:
    hint = '=cmd <img src=x>, "quoted"\nand on'
    hidden = handin("eve", 0.0, hint="the 7th hidden input is 3.25", mark={"on_hidden": True})
    rows = read(
        as_moodle(record_of(handin("ada", 4.0), handin("bob", 1.0, hint=hint), hidden), {}, "idnumber", True).text
    )
    assert rows[0] == ["ID number", "02_floats", "02_floats (Feedback)"]
    assert rows[1] == ["ada", "4", "02-x: 4 of 4"]
    assert rows[2][2] == '02-x: 1 of 4 (=cmd <\u200bimg src=x>, "quoted" and on)'
    assert rows[3][2] == "02-x: 0 of 4 (the public cases pass, but not every hidden one does)"


TEXTS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), min_size=1, max_size=20)
NAMES = TEXTS | st.sampled_from(
    [
        "a\x9b2J",
        "a\u202eb",
        "\uff1d1",
        "  =1",
        "=1+1",
        "+49",
        "-x",
        "@me",
        "\tx",
        "\rx",
        'a"b',
        "a,b",
        "two\nlines",
        "' ",
        ";",
    ]
)


@settings(max_examples=150, deadline=None)
@given(names=st.lists(NAMES, unique=True, min_size=1, max_size=5), called=NAMES, hint=NAMES)
def test_whatever_people_are_called_the_points_stay_theirs(names: list[str], called: str, hint: str) -> None:
    record = record_of(*(handin(name, index / 4, hint=hint) for index, name in enumerate(names)))
    exported = as_canvas(record, {names[0]: Person(name=called)})
    found = canvas_import(exported.text)
    right = {name: [f"{index / 4:g}"] for index, name in enumerate(names)}
    assert found == {name: right[name] for name in found}
    assert all(name in found or name in exported.remarks[0] for name in names)
    moodle = as_moodle(record, {}, "idnumber", comments=True)
    rows = read(moodle.text)[1:]
    assert {row[0]: row[1:2] for row in rows} == {name: right[name] for name in names if text(name) == name}
    for row in (*read(exported.text), *read(moodle.text)):
        assert not any(cell.startswith(FORMULA_STARTS) for cell in row)
        assert all(cell.replace("\u200b", "").isprintable() for cell in row)


def test_the_commands(course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "grades.csv"
    assert main(["export", str(course.root), "--format", "canvas", "--out", str(out)]) == 0
    assert "ada" in canvas_import(out.read_text())
    said = capsys.readouterr().out
    assert FORMULA in said and str(out) in said
    words = ["--format", "moodle", "--id-field", "username", "--comments", "--lab", "00", "--out", str(out)]
    assert main(["export", str(course.root), *words]) == 0
    rows = {row[0]: row[1:] for row in read(out.read_text())}
    assert rows["Username"] == [LAB, f"{LAB} (Feedback)"] and rows["ada"][0] == "3" and rows["torn"] == ["", ""]


def test_options_of_another_format_are_refused(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--roster", "x"], ["--id-field", "email"], ["--format", "canvas", "--comments"]):
        assert main(["export", str(course.root), *words]) == 2
        assert "is for --format" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["canvas", "moodle"])
def test_a_class_without_grades_is_said(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    course = empty_course(tmp_path / "empty")
    assert main(["export", str(course.root), "--format", name]) == 2
    assert "nobody has handed in anything yet: export when there are grades" in capsys.readouterr().err
    assert not (course.root / f"grades-{name}.csv").exists()


@pytest.mark.slow
def test_people_are_read_from_the_gradebook(tmp_path: Path) -> None:
    course = empty_course(tmp_path / "people")
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}", "numerics") as gradebook:
        gradebook.add_student("ada", first_name="Ada", last_name="Lovelace", email="a@b.c", lms_user_id="7")
        gradebook.add_student("bob")
    ada = Person("Lovelace, Ada", "a@b.c", "7", first_name="Ada", last_name="Lovelace")
    assert read_people(course) == {"ada": ada, "bob": Person()}
