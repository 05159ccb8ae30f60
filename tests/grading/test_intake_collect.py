"""The command `collect`: what is taken, kept, replaced, left alone and refused, and what it says about it."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import nbformat
import pytest

from grading.__main__ import main
from grading.course import Course
from grading.files import Unreadable
from grading.intake import accept as accept_module
from grading.intake import swap as swap_module
from grading.intake.store import archive_bytes, archive_submission, archived_path
from grading.log import Log
from grading.rebuild.submission import MAX_BYTES
from tests.grading.lessons import LAB, cell_of, solved

CONFIG = "c = get_config()\n"


def book(answer: str) -> bytes:
    """The small lab with this answer, as a student saves it."""
    notebook = solved()
    cell_of(notebook, "00-warm-up").source = answer
    return nbformat.writes(notebook).encode()


def make_small_course(root: Path) -> Course:
    """A course with the small lab, not released: nothing here needs nbgrader."""
    (root / "source" / LAB).mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG)
    (root / "source" / LAB / f"{LAB}.ipynb").write_bytes(book("solved"))
    course = Course.at(root)
    course.make_key()
    return course


@pytest.fixture
def course(tmp_path) -> Course:
    return make_small_course(tmp_path / "course")


def make_zip(path: Path, members: dict[str, bytes], when: tuple[int, ...] = (2026, 1, 31, 12, 0, 0)) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, when), data)
    return path


def collect(course: Course, *words: str | Path) -> int:
    return main(["collect", str(course.root), "00", *map(str, words)])


def state(course: Course) -> dict[str, tuple[int, bytes]]:
    """Every file of the course but the lock, with its time of change."""
    files = [path for path in course.root.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(course.root)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def received(course: Course) -> list[dict]:
    return [entry.facts for entry in Log(course).entries() if entry.kind == "received"]


def test_a_moodle_archive_is_taken_and_the_second_time_nothing_changes(course, tmp_path, capsys) -> None:
    members = {
        "Ada Lovelace_12_assignsubmission_file_/00_small.ipynb": book("a"),
        "Ada Lovelace_12_assignsubmission_onlinetext_/onlinetext.html": b"see the file",
        "Zoë Ünal_13_assignsubmission_file_/Untitled.ipynb": book("z"),
    }
    archive = make_zip(tmp_path / "m.zip", members)
    assert collect(course, "--zip", archive) == 0
    assert course.submitted(LAB, "Ada Lovelace").read_bytes() == book("a")
    assert course.submitted(LAB, "Zoë Ünal").read_bytes() == book("z")
    told = capsys.readouterr().out
    assert "2 taken, 0 unchanged, 0 refused (moodle)" in told
    assert "2 came without a time of submission: nbgrader counts them as in time" in told
    assert "passed over 'Ada Lovelace_12_assignsubmission_onlinetext_/onlinetext.html': it is not a notebook" in told
    # Moodle writes the time of the download.
    assert not course.submitted(LAB, "Ada Lovelace").with_name("timestamp.txt").exists()
    before = state(course)
    assert collect(course, "--zip", archive) == 0
    assert state(course) == before
    assert "0 taken, 2 unchanged, 0 refused" in capsys.readouterr().out


def test_a_second_submission_replaces_the_first_which_is_kept_read_only(course, tmp_path, capsys) -> None:
    first, second = book("first"), book("second")
    collect(course, "--zip", make_zip(tmp_path / "1.zip", {"lee_7_100_00_small.ipynb": first}))
    assert collect(course, "--zip", make_zip(tmp_path / "2.zip", {"lee_LATE_7_101_00_small-1.ipynb": second})) == 0
    assert course.submitted(LAB, "7").read_bytes() == second
    digests = [facts["submission"] for facts in received(course)]
    assert [archived_path(course, LAB, digest).read_bytes() for digest in digests] == [first, second]
    assert archived_path(course, LAB, digests[0]).stat().st_mode & 0o777 == 0o400
    assert f"replaces {digests[0][:12]} (late, says the platform)" in capsys.readouterr().out
    assert [facts["late"] for facts in received(course)] == [False, True]
    assert Log(course).verify() == []


def test_an_older_attempt_replaces_nothing_unless_forced(course, tmp_path, capsys) -> None:
    older = make_zip(tmp_path / "1.zip", {"lee_7_100_00_small.ipynb": book("first")})
    collect(course, "--zip", make_zip(tmp_path / "2.zip", {"lee_7_101_00_small-1.ipynb": book("second")}))
    before = state(course)
    assert collect(course, "--zip", older) == 1
    assert state(course) == before
    assert "it is older than what is there (" in capsys.readouterr().out
    assert collect(course, "--zip", older, "--force") == 0
    assert course.submitted(LAB, "7").read_bytes() == book("first")


def test_without_numbers_and_times_what_came_before_counts_as_older(course, tmp_path, capsys) -> None:
    name = "Ada_1_assignsubmission_file_/00_small.ipynb"
    one, two = (make_zip(tmp_path / f"{text}.zip", {name: book(text)}) for text in ("one", "two"))
    assert [collect(course, "--zip", path) for path in (one, two, one)] == [0, 0, 1]
    assert course.submitted(LAB, "Ada").read_bytes() == book("two")


def test_a_folder_is_taken_at_the_times_of_its_files(course, tmp_path, capsys) -> None:
    for student, text in (("ada", "early"), ("bob", "b")):
        path = tmp_path / "in" / student / f"{LAB}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(book(text))
        os.utime(path, (1_767_225_600, 1_767_225_600))
    (tmp_path / "in" / f"eve_{LAB}.ipynb").symlink_to(course.source(LAB))
    os.mkfifo(tmp_path / "in" / f"pip_{LAB}.ipynb")
    assert collect(course, "--folder", tmp_path / "in") == 1
    told = capsys.readouterr().out
    assert f"refused 'eve_{LAB}.ipynb': it is a link" in told
    assert f"refused 'pip_{LAB}.ipynb': it is a device or a pipe" in told
    assert course.students(LAB) == ["ada", "bob"]
    stamp = course.submitted(LAB, "ada").with_name("timestamp.txt")
    assert stamp.read_text() == "2026-01-01 00:00:00.000000 UTC"
    ada = tmp_path / "in" / "ada" / f"{LAB}.ipynb"
    ada.write_bytes(book("from before"))
    os.utime(ada, (1_767_000_000, 1_767_000_000))
    assert collect(course, "--folder", tmp_path / "in") == 1
    assert "it is older than what is there" in capsys.readouterr().out
    assert course.submitted(LAB, "ada").read_bytes() == book("early")


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


def test_what_a_killed_run_left_is_noted_at_the_time_that_it_left(course, tmp_path) -> None:
    archive = make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")})
    collect(course, "--zip", archive)
    (course.root / ".grading" / "log.jsonl").unlink()
    assert collect(course, "--zip", archive, "--timezone", "Europe/Berlin") == 0
    assert [facts["when"] for facts in received(course)] == ["2026-01-31T12:00:00+00:00"]


def test_what_is_no_notebook_is_refused_and_replaces_nothing(course, tmp_path, capsys) -> None:
    collect(course, "--zip", make_zip(tmp_path / "1.zip", {f"ada/{LAB}.ipynb": book("a")}, (2026, 1, 1, 0, 0, 0)))
    members = {
        f"ada/{LAB}.ipynb": book("a")[:-50],
        "bob/report.pdf": b"%PDF",
        f"c/{LAB}.ipynb": b"\xff\xfe",
        "x.ipynb": b"{}",
    }
    assert collect(course, "--zip", make_zip(tmp_path / "2.zip", members)) == 1
    told = capsys.readouterr().out
    assert f"refused 'ada/{LAB}.ipynb': it is not a complete notebook: it breaks off or is damaged at line" in told
    assert "refused 'bob/report.pdf': it is not a notebook (.ipynb), and there is no other file of this student" in told
    assert f"refused 'c/{LAB}.ipynb': it is not a text file: ask for the notebook itself" in told
    assert "refused 'x.ipynb': nobody can tell whose it is: its name does not follow the way of plain" in told
    assert course.submitted(LAB, "ada").read_bytes() == book("a")


def test_a_dry_run_says_the_same_and_writes_nothing(course, tmp_path, capsys) -> None:
    before = state(course)
    assert collect(course, "--zip", make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")}), "--dry-run") == 0
    assert "1 would be taken, 0 unchanged, 0 refused" in capsys.readouterr().out
    assert state(course) == before


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
        ("", 'has no column "student"'),
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


def test_nothing_is_written_through_a_link_in_the_course(course, tmp_path, capsys) -> None:
    (tmp_path / "elsewhere").mkdir()
    (course.root / "submitted").mkdir()
    (course.root / "submitted" / "ada").symlink_to(tmp_path / "elsewhere")
    assert collect(course, "--zip", make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")})) == 1
    assert "submitted/ada is a link or no folder: look at it and remove it" in capsys.readouterr().out
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_student_who_is_there_under_nearly_the_same_name_is_refused(course, tmp_path, capsys) -> None:
    collect(course, "--zip", make_zip(tmp_path / "1.zip", {f"ada/{LAB}.ipynb": book("a")}))
    assert collect(course, "--zip", make_zip(tmp_path / "2.zip", {f"ADA/{LAB}.ipynb": book("b")})) == 1
    assert 'the course already has the student "ada", which is nearly the same name' in capsys.readouterr().out


def test_a_submission_put_there_by_hand_is_kept_before_it_is_replaced(course, tmp_path) -> None:
    path = course.submitted(LAB, "ada")
    path.parent.mkdir(parents=True)
    path.write_bytes(book("by hand"))
    (path.parent / "timestamp.txt").write_text("2026-02-01 00:00:00 UTC")
    assert collect(course, "--zip", make_zip(tmp_path / "1.zip", {f"ada/{LAB}.ipynb": book("older")})) == 1
    newer = make_zip(tmp_path / "2.zip", {f"ada/{LAB}.ipynb": book("newer")}, (2026, 2, 2, 0, 0, 0))
    assert collect(course, "--zip", newer) == 0
    contents = [file.read_bytes() for file in (course.root / ".grading" / "submissions" / LAB).iterdir()]
    assert sorted(contents) == sorted([book("by hand"), book("newer")])


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_failure_on_the_way_leaves_the_earlier_submission_whole(course, tmp_path, monkeypatch, exchanges) -> None:
    """With and without a system that exchanges two names in one step."""
    if not exchanges:
        monkeypatch.setattr(swap_module, "_exchange", lambda one, other: False)
    archives = [
        make_zip(tmp_path / f"{n}.zip", {f"ada/{LAB}.ipynb": book(f"{n}")}, (2026, 1, n, 0, 0, 0)) for n in (1, 2, 3)
    ]
    assert [collect(course, "--zip", path) for path in archives[:2]] == [0, 0]
    before = state(course)

    def fail(draft: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(accept_module, "swap_folder", fail)
        assert collect(course, "--zip", archives[2]) == 2
    after = state(course)
    assert {name: after[name] for name in before} == before
    assert collect(course, "--zip", archives[2]) == 0
    assert course.submitted(LAB, "ada").read_bytes() == book("3")
    assert sorted(os.listdir(course.root / "submitted" / "ada")) == [LAB]


def test_what_a_killed_run_put_there_without_a_word_is_noted_by_the_next(course, tmp_path) -> None:
    archive = make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")})
    path = course.submitted(LAB, "ada")
    path.parent.mkdir(parents=True)
    path.write_bytes(book("a"))
    (path.parents[1] / f".incoming-{LAB}-0123").mkdir()
    assert collect(course, "--zip", archive) == 0
    assert [facts["student"] for facts in received(course)] == ["ada"]
    assert collect(course, "--zip", archive) == 0
    assert len(received(course)) == 1


def test_the_store_mends_a_file_that_was_cut_short(course) -> None:
    data = book("a")
    digest = archive_bytes(course, LAB, data)
    path = archived_path(course, LAB, digest)
    path.chmod(0o600)
    path.write_bytes(data[:10])
    assert archive_bytes(course, LAB, data) == digest
    assert path.read_bytes() == data and path.stat().st_mode & 0o777 == 0o400


def test_the_store_keeps_what_is_submitted_but_follows_no_link(course) -> None:
    path = course.submitted(LAB, "ada")
    path.parent.mkdir(parents=True)
    path.write_bytes(book("a"))
    assert archived_path(course, LAB, archive_submission(course, LAB, "ada")).read_bytes() == book("a")
    path.unlink()
    path.symlink_to(course.source(LAB))
    with pytest.raises(Unreadable, match="is a link or lies behind one: ask for the file itself"):
        archive_submission(course, LAB, "ada")
    path.unlink()
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(Unreadable, match="has more than 52,428,800 bytes: clear its outputs and resubmit"):
        archive_submission(course, LAB, "ada")


def test_a_notebook_whose_json_is_deep_or_odd_is_refused_not_raised(course, tmp_path, capsys) -> None:
    odd = [b"[" * 50_000, b"3", b"null", json.dumps({"nbformat": 4, "cells": [3]}).encode()]
    members = {f"s{n}/{LAB}.ipynb": data for n, data in enumerate(odd)}
    assert collect(course, "--zip", make_zip(tmp_path / "a.zip", members)) == 1
    assert "0 taken, 0 unchanged, 4 refused" in capsys.readouterr().out
