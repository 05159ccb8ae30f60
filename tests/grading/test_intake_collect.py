"""The command `collect`: what is taken, replaced, left alone and refused, and what it says about it."""

from __future__ import annotations

import json
import os

import pytest

from grading.course import Course
from grading.intake.store import archived_path
from grading.log import Log
from tests.grading.deliveries import book, collect, make_small_course, make_zip, received, state
from tests.grading.lessons import LAB


@pytest.fixture
def course(tmp_path) -> Course:
    return make_small_course(tmp_path / "course")


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


def test_a_student_who_is_there_under_nearly_the_same_name_is_refused(course, tmp_path, capsys) -> None:
    collect(course, "--zip", make_zip(tmp_path / "1.zip", {f"ada/{LAB}.ipynb": book("a")}))
    assert collect(course, "--zip", make_zip(tmp_path / "2.zip", {f"ADA/{LAB}.ipynb": book("b")})) == 1
    assert 'the course already has the student "ada", which is nearly the same name' in capsys.readouterr().out


def test_a_notebook_whose_json_is_deep_or_odd_is_refused_not_raised(course, tmp_path, capsys) -> None:
    odd = [b"[" * 50_000, b"3", b"null", json.dumps({"nbformat": 4, "cells": [3]}).encode()]
    members = {f"s{n}/{LAB}.ipynb": data for n, data in enumerate(odd)}
    assert collect(course, "--zip", make_zip(tmp_path / "a.zip", members)) == 1
    assert "0 taken, 0 unchanged, 4 refused" in capsys.readouterr().out
