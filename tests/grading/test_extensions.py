"""extensions.csv: due dates that are moved for one student, in nbgrader's gradebook, its penalties and its pages."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.course import Course
from grading.errors import UserError
from grading.gradebook.extensions import AS_IT_SHOULD_BE, Extension, Extensions, problems_with, read_extensions
from grading.gradebook.feedback import make_feedback
from grading.gradebook.preprocessors import Supervise
from grading.log import Log
from grading.nbgrader_api import expect_success, open_api
from grading.report.gather import gather_record
from grading.report.html import as_page
from tests.grading.deliveries import make_small_course
from tests.grading.lessons import LAB, make_course, submit

DUE = datetime(2026, 3, 2)
LATE = "2026-03-05 10:00:00 UTC"
PENALTY = '\nc.LateSubmissionPlugin.penalty_method = "zero"\n'
HEAD = "student,lab,until,reason\n"


def write(course: Course, *rows: str, head: str = HEAD) -> None:
    (course.root / "extensions.csv").write_text(head + "".join(f"{row}\n" for row in rows))


@pytest.fixture
def small(tmp_path: Path) -> Course:
    return make_small_course(tmp_path / "course")


def granted(course: Course) -> dict[str, datetime]:
    found = read_extensions(course)
    assert found.problems == ()
    return {student: extension.until for (_, student), extension in found.granted.items()}


def test_dates_are_read_as_they_are_written_and_nothing_is_guessed(small) -> None:
    assert read_extensions(small).granted == {}
    write(
        small,
        "a,00,2026-03-09,",
        "b,00_small,2026-03-09 23:59,",
        "c,00,2026-03-09T23:59:30 UTC,",
        "d,00,2026-03-09 23:59 Europe/Berlin,ill",
        "e,00,2026-07-09 23:59:00+02:00,",
        "",
        "f , 00 ,2026-03-09 12:00Z,",
    )
    assert granted(small) == {
        "a": datetime(2026, 3, 9, 23, 59, 59),
        "b": datetime(2026, 3, 9, 23, 59),
        "c": datetime(2026, 3, 9, 23, 59, 30),
        "d": datetime(2026, 3, 9, 22, 59),
        "e": datetime(2026, 7, 9, 21, 59),
        "f": datetime(2026, 3, 9, 12),
    }
    assert read_extensions(small).of(LAB)["d"] == Extension("d", LAB, datetime(2026, 3, 9, 22, 59), "ill", row=5)


@pytest.mark.parametrize(
    "until", ["10", "next week", "09.03.2026", "2026-02-30", "2026-03-09 24:30", "2026-03-09 CEST!", "2026-03-09 Mars"]
)
def test_what_is_no_date_is_named_and_the_other_rows_are_obeyed(small, until) -> None:
    write(small, f"ada,00,{until},", "bob,00,2026-03-09,")
    found = read_extensions(small)
    assert [extension.student for extension in found.granted.values()] == ["bob"]
    assert found.problems == (f'extensions.csv, row 2: "{until}" is no date: {AS_IT_SHOULD_BE}; the row is not obeyed',)


def test_each_bad_row_is_named_with_what_is_wrong(small) -> None:
    write(
        small,
        ",00,2026-03-09,",
        "ada,17,2026-03-09,",
        "bob,00,2026-03-09,a, reason with a comma",
        "eve,00,2026-03-09,",
        "Eve,00_small,2026-03-10,",
        "short",
        "*,00,2026-03-09,",
        "zoe,00,2026-03-09,",
    )
    found = read_extensions(small)
    assert list(found.granted) == [(LAB, "zoe")]
    assert found.problems == (
        "extensions.csv, row 2: the name of the student is empty; the row is not obeyed",
        'extensions.csv, row 3: there is no lab "17" in this course (it has: 00_small); the row is not obeyed',
        "extensions.csv, row 4: it has more cells than there are columns (put a text with a comma into quotes); the "
        "row is not obeyed",
        'extensions.csv, row 7: there is no lab "" in this course (it has: 00_small); the row is not obeyed',
        "extensions.csv, row 8: nbgrader cannot take the name '*'; the row is not obeyed",
        "extensions.csv, rows 5 and 6: all about eve and 00_small; keep one: none of them is obeyed",
    )


@pytest.mark.parametrize("head", ["student,lab,until\n", "student;lab;until\n", "lab, until, student\n"])
def test_the_column_of_reasons_may_be_left_out(small, head) -> None:
    separator = ";" if ";" in head else ","
    names = [name.strip() for name in head.split(separator)]
    cells = {"student": "ada", "lab": "00", "until": "2026-03-09 12:00"}
    write(small, separator.join(cells[name] for name in names), head=head)
    assert read_extensions(small) == Extensions(
        {(LAB, "ada"): Extension("ada", LAB, datetime(2026, 3, 9, 12), "", row=2)}
    )


def refusals(path: Path) -> dict[bytes, str]:
    columns = "let this line be: student,lab,until,reason"
    return {
        b"student;lab;reason\na;00;ill\n": f'{path}, line 1: there is no column "until": {columns}',
        b"ada,00,2026-03-09,ill\n": f'{path}, line 1: there is no column "student": {columns}',
        b"\xff\xfe": f'{path} is not UTF-8 text: save it as "CSV UTF-8"',
    }


def test_a_file_that_cannot_be_read_is_refused(small) -> None:
    path = small.root / "extensions.csv"
    for data, text in refusals(path).items():
        path.write_bytes(data)
        with pytest.raises(UserError) as error:
            read_extensions(small)
        assert str(error.value) == text
    for data in (b"", HEAD.encode()):
        path.write_bytes(data)
        assert read_extensions(small) == Extensions()


@pytest.fixture
def late_class(tmp_path: Path) -> Course:
    """Due on the second of March; ada and bob came on the fifth."""
    course = make_course(tmp_path / "course", PENALTY)
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate=DUE)
    for student in ("ada", "bob"):
        submit(course, student, timestamp=LATE)
    return course


def run(course: Course) -> int:
    return main(["grade", str(course.root), "00", "--isolation", "none", "--workers", "1"])


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_grading_with_a_file_that_cannot_be_read_ends_before_anything_is_graded(late_class, capsys) -> None:
    path = late_class.root / "extensions.csv"
    for data, text in refusals(path).items():
        path.write_bytes(data)
        assert run(late_class) == 2
        assert capsys.readouterr().err == f"grading: {text}\n"
        assert not (late_class.root / "autograded").exists()
    write(late_class, "ada,00,2026-03-06", head="student,lab,until\n")
    assert run(late_class) == 0
    assert penalties(late_class) == {"ada": 0.0, "bob": 3.0}


def penalties(course: Course) -> dict[str, float]:
    return {handin.student: handin.penalty for handin in gather_record(course).handins}


def extensions_logged(course: Course) -> list[tuple]:
    entries = [entry.facts for entry in Log(course).entries() if entry.kind == "extension"]
    return [(facts["student"], facts["until"], facts["reason"]) for facts in entries]


def test_a_lab_without_a_due_date_is_named_with_the_place_where_it_is_set() -> None:
    row = Extension("ada", LAB, datetime(2026, 3, 5), "ill", row=2)
    (said,) = problems_with(Extensions({(LAB, "ada"): row}), LAB, None)
    assert said.startswith("extensions.csv, row 2: 00_small has no due date, so nothing is late;")
    assert said.endswith("until it has one (formgrader, Edit)")


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_penalties_pages_and_the_report_obey_it_and_bad_rows_lose_nothing(late_class, capsys) -> None:
    course = late_class
    write(course, "ada,00,2026-03-05 12:00,a <b>cold</b>", "zoe,00,2026-03-09,", "bob,00,2026-03-01,")
    assert run(course) == 1
    told = capsys.readouterr().out
    not_after = "2026-03-01 23:59:59 UTC is not after the due date, 2026-03-02 00:00:00 UTC; the row is not obeyed"
    assert f"extensions.csv, row 4: {not_after}" in told
    assert 'extensions.csv, row 3: nobody called "zoe" has handed in 00_small yet' in told
    assert penalties(course) == {"ada": 0.0, "bob": 3.0}
    assert main(["audit", str(course.root), "--student", "ada"]) == 0
    assert re.search(r"extension +due 2026-03-05 12:00:00 UTC", capsys.readouterr().out)
    make_feedback(course, LAB)
    page = course.feedback(LAB, "ada").read_text()
    assert "For you this lab was due by 2026-03-05 12:00:00 UTC." in re.sub(r"\s+", " ", page)
    assert "cold" not in page and "was due by" not in course.feedback(LAB, "bob").read_text()
    report = as_page(gather_record(course), course.root / "report.html")
    assert "due 2026-03-05 12:00:00 UTC (a &lt;b&gt;cold&lt;/b&gt;)" in report
    # A row that is broken afterwards takes nothing from anybody.
    write(course, "ada,00,2026-03-5,a cold", "bob,00,2026-03-06,", 'zoe,00,"2026-03-09",')
    assert run(course) == 1
    told = capsys.readouterr().out
    assert f'extensions.csv, row 2: "2026-03-5" is no date: {AS_IT_SHOULD_BE}' in told
    assert penalties(course) == {"ada": 0.0, "bob": 0.0}
    assert "extensions.csv, row 2" in as_page(gather_record(course), course.root / "report.html")
    # zoe's is granted already when she comes.
    submit(course, "zoe", timestamp="2026-03-09 23:00:00 UTC")
    write(course, "bob,00,2026-03-06,", "zoe,00,2026-03-09,")
    assert run(course) == 0
    assert "zoe" in capsys.readouterr().out
    assert penalties(course) == {"ada": 3.0, "bob": 0.0, "zoe": 0.0}
    assert extensions_logged(course) == [
        ("bob", "2026-03-06 23:59:59 UTC", ""),
        ("ada", None, ""),
    ]
    assert run(course) == 0
    assert "unchanged" in capsys.readouterr().out
    assert Log(course).verify() == [] and main(["audit", str(course.root)]) == 0


@pytest.mark.full("classroom")
@pytest.mark.usefixtures("in_process")
def test_what_nbgrader_was_told_stays_and_its_own_autograding_obeys_the_file(late_class) -> None:
    course = late_class
    assert run(course) == 0
    assert penalties(course) == {"ada": 3.0, "bob": 3.0}
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        gradebook.grant_extension(LAB, "bob", days=5)
    write(course, "ada,00,2026-03-06,")
    assert Supervise in open_api(course).config.Autograde.autograde_preprocessors
    for student in ("ada", "bob"):
        expect_success(course, open_api(course).autograde(LAB, student, force=True))
    assert penalties(course) == {"ada": 0.0, "bob": 0.0}
    write(course)
    assert run(course) == 0
    assert penalties(course)["bob"] == 0.0
    handins = {handin.student: handin.extended for handin in gather_record(course).handins}
    assert handins["bob"] == "due 2026-03-07 00:00:00 UTC"


@pytest.mark.full("classroom")
@pytest.mark.usefixtures("in_process")
def test_nbgraders_own_autograding_refuses_a_file_that_cannot_be_read_before_it_runs_anything(late_class) -> None:
    results = late_class.root / ".grading" / "results" / LAB
    for data, text in refusals(late_class.root / "extensions.csv").items():
        (late_class.root / "extensions.csv").write_bytes(data)
        done = open_api(late_class).autograde(LAB, "ada")
        assert not done["success"]
        assert text in done["log"]
        assert not list(results.glob("*.json"))
    write(late_class, "ada,00,2026-03-06,")
    expect_success(late_class, open_api(late_class).autograde(LAB, "ada"))
    assert len(list(results.glob("*.json"))) == 1
