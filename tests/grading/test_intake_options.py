"""What `collect` is told of a delivery: a roster, a pattern, a time zone; and requests that it cannot follow."""

from __future__ import annotations

import pytest

from grading.course import Course
from tests.grading.deliveries import book, collect, make_small_course, make_zip, received, state
from tests.grading.lessons import LAB


@pytest.fixture
def course(tmp_path) -> Course:
    return make_small_course(tmp_path / "course")


def test_nbgraders_own_layout_brings_its_timestamp(course, tmp_path, capsys) -> None:
    members = {
        f"submitted/ada/{LAB}/{LAB}.ipynb": book("a"),
        f"submitted/ada/{LAB}/timestamp.txt": b"2026-01-30 10:00:00 UTC",
        f"submitted/bob/{LAB}/{LAB}.ipynb": book("b"),
        f"submitted/eve/{LAB}/{LAB}.ipynb": book("e"),
        f"submitted/eve/{LAB}/timestamp.txt": b"yesterday evening",
    }
    assert collect(course, "--zip", make_zip(tmp_path / "a.zip", members), "--timezone", "Europe/Berlin") == 1
    told = capsys.readouterr().out
    assert "local times in the archive were taken as Europe/Berlin (--timezone)" in told
    assert "timestamp.txt is not a date: write one like 2026-01-31 12:00:00 UTC" in told
    texts = {name: course.submitted(LAB, name).with_name("timestamp.txt").read_text() for name in ("ada", "bob")}
    assert texts == {"ada": "2026-01-30 10:00:00.000000 UTC", "bob": "2026-01-31 11:00:00.000000 UTC"}


def test_times_that_were_taken_wrongly_are_mended_by_force_and_stay_without(course, tmp_path, capsys) -> None:
    archive = make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")}, (2026, 1, 31, 23, 30, 0))
    stamp = course.submitted(LAB, "ada").with_name("timestamp.txt")
    collect(course, "--zip", archive)
    before = state(course)
    for words in ((), ("--dry-run", "--force")):
        capsys.readouterr()
        assert collect(course, "--zip", archive, "--timezone", "Europe/Berlin", *words) == 0
        assert state(course) == before
    assert "2026-01-31 22:30:00  new time" in capsys.readouterr().out
    collect(course, "--zip", archive, "--timezone", "Europe/Berlin")
    told = capsys.readouterr().out
    assert "2026-01-31 23:30:00  unchanged, its time too (here it is 2026-01-31 22:30:00: --force takes that)" in told
    assert "0 taken, 1 unchanged" in told
    assert collect(course, "--zip", archive, "--timezone", "Europe/Berlin", "--force") == 0
    told = capsys.readouterr().out
    assert "2026-01-31 22:30:00  new time" in told and "1 taken, 0 unchanged" in told and "next: python -m" in told
    assert stamp.read_text() == "2026-01-31 22:30:00.000000 UTC"
    assert [facts["when"][:19] for facts in received(course)] == ["2026-01-31T23:30:00", "2026-01-31T22:30:00"]
    after = state(course)
    # A source that knows no time leaves the one that is there.
    for words in (("--force", "--timezone", "Europe/Berlin"), ("--force", "--times", "none")):
        assert collect(course, "--zip", archive, *words) == 0
        assert "2026-01-31 22:30:00  unchanged\n" in capsys.readouterr().out
        assert state(course) == after


def test_the_roster_maps_names_and_numbers_and_tells_who_is_missing(course, tmp_path, capsys) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text(
        "\ufeffIdentifier;Full name;student\nParticipant 12;Ada Lovelace;al1\nParticipant 13;Bob;b2\n;Eve;e3\n"
    )
    members = {
        "Participant_12_assignsubmission_file_/00_small.ipynb": book("a"),
        "Bob_99_assignsubmission_file_/00_small.ipynb": book("b"),
        "Mallory_98_assignsubmission_file_/00_small.ipynb": book("m"),
    }
    assert collect(course, "--zip", make_zip(tmp_path / "a.zip", members), "--roster", roster) == 1
    told = capsys.readouterr().out
    assert course.students(LAB) == ["al1", "b2"]
    assert 'the roster has nobody called "Mallory 98"' in told
    assert "nothing from 1 of the roster: e3" in told


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name,id\nada,1\n", 'has no column "student"'),
        ("student\na*\n", "row 2: nbgrader cannot take the name 'a*'"),
        ("student,id\nada,1\nAda,2\n", 'row 3: student "Ada" is there already'),
        ("", "has nobody in it"),
    ],
)
def test_a_roster_that_cannot_be_used_stops_all(course, tmp_path, capsys, text, problem) -> None:
    (tmp_path / "r.csv").write_text(text)
    archive = make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")})
    assert collect(course, "--zip", archive, "--roster", tmp_path / "r.csv") == 2
    assert problem in capsys.readouterr().err
    assert course.students(LAB) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--pattern", "("), "--pattern is not a regular expression"),
        (("--pattern", ".*"), "--pattern has no group for the student"),
        (("--timezone", "Middle/Earth"), 'there is no time zone "Middle/Earth"'),
        (("--roster", "/nowhere.csv"), "/nowhere.csv cannot be read"),
    ],
)
def test_a_bad_request_is_said(course, tmp_path, capsys, words, problem) -> None:
    archive = make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")})
    assert collect(course, "--zip", archive, *words) == 2
    assert problem in capsys.readouterr().err


def test_a_pattern_of_ones_own(course, tmp_path) -> None:
    members = {
        "hw0 by ada try 2.ipynb": book("2"),
        "hw0 by ada try 10.ipynb": book("10"),
        "hw0 by bob try 1.ipynb": book("b"),
    }
    pattern = r"by (?P<student>\w+) try (?P<attempt>\d+)"
    assert collect(course, "--zip", make_zip(tmp_path / "a.zip", members), "--pattern", pattern) == 0
    assert course.submitted(LAB, "ada").read_bytes() == book("10")
    assert course.students(LAB) == ["ada", "bob"]
