"""Odd notebooks from the folder that they came in to the grade: each graded or named, and nobody else's is held up."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from grading.__main__ import main
from grading.course import Course
from grading.results import read_ungraded
from tests.grading.lessons import LAB, SOLUTION, cell_of, grade, make_course, points, released

pytestmark = pytest.mark.slow
GRADED = "graded"
CHECK = "00-warm-up-check"
MOST_CPU_S = 240.0
MOST_BYTES = 3 * 2**30
"""Of a child that reads one: 2 GiB beyond what the process has that forks it."""


def used_cpu_s() -> float:
    """By this process, and by the children that it has waited for."""
    return sum(os.times()[:4])


def right(course: Course) -> bytes:
    notebook = released(course)
    cell_of(notebook, "00-warm-up").source = SOLUTION
    return nbformat.writes(notebook).encode()


def with_nul_in_a_cell(data: bytes) -> bytes:
    return data.replace(b"def rms", b"# \\u0000\\ndef rms")


def without_ids(data: bytes) -> bytes:
    notebook = json.loads(data)
    for cell in notebook["cells"]:
        del cell["id"]
    return json.dumps({**notebook, "nbformat_minor": 4}).encode()


def with_keys_twice(data: bytes) -> bytes:
    """As nbformat and every other reader has it, the last one counts."""
    return (
        data[:1]
        + b'"nbformat": 3, "cells": [], '
        + data[1:].replace(b'"cell_type": "code"', b'"cell_type": 3, "cell_type": "code"')
    )


def with_many_cells(data: bytes) -> bytes:
    notebook = json.loads(data)
    notebook["cells"] += [{"cell_type": "code", "source": ""}] * 100_000
    return json.dumps(notebook).encode()


def deep(data: bytes) -> bytes:
    return data[:1] + b'"deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"," + data[1:]


def deep_output(data: bytes) -> bytes:
    return data[:1] + b'"deep": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"," + data[1:]


ODD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nul-bytes": (lambda data: b"\0" * len(data), "is not a complete notebook"),
    "nul-at-the-end": (lambda data: data + b"\0" * 4096, "is not a complete notebook"),
    "nul-in-a-cell": (with_nul_in_a_cell, GRADED),
    "huge": (lambda data: data + b" " * (200 * 2**20), "has more than 52,428,800 bytes"),
    "large": (lambda data: data + b" " * (45 * 2**20), GRADED),
    "many-cells": (with_many_cells, "has 100,007 cells with"),
    "deep": (deep, "its JSON cannot be read"),
    "nested": (deep_output, GRADED),
    "keys-twice": (with_keys_twice, GRADED),
    "no-ids": (without_ids, GRADED),
    "latin-1": (lambda data: data.replace(b"def rms", b"# \xe4\ndef rms"), "is not a text file"),
    "bom": (lambda data: b"\xef\xbb\xbf" + data, "begins with a byte order mark, with which Jupyter cannot open it"),
    "utf-16": (lambda data: data.decode().encode("utf-16"), "is not a text file"),
    "empty": (lambda data: b"", "is empty: ask for a new copy"),
    "zip": (lambda data: b"PK\x03\x04" + b"\0" * 1000, "is not a complete notebook"),
}
NO_FILES: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "device": lambda path: os.mknod(path, 0o20666, os.makedev(1, 5)),
    "link": lambda path: path.symlink_to("/dev/zero"),
}
NO_FILES_IN_A_FOLDER = {
    "folder": "it is an empty folder with the name of a notebook",
    "pipe": "it is a device or a pipe",
    "device": "it is a device or a pipe",
    "link": "it is a link",
}
NO_FILES_BY_HAND = {
    "folder": "cannot be read: Is a directory",
    "pipe": "is not an ordinary file",
    "device": "is not an ordinary file",
    "link": "is a link or lies behind one",
}


@pytest.fixture
def course(tmp_path) -> Course:
    return make_course(tmp_path / "course")


def lay_out(folder: Path, course: Course) -> None:
    """A folder for each student, as it might be handed over by a person."""
    data = right(course)
    for student in ("ada", *ODD, *NO_FILES, "zoe"):
        path = folder / student / f"{LAB}.ipynb"
        path.parent.mkdir(parents=True)
        if student in NO_FILES:
            if student == "device" and os.geteuid() != 0:
                continue
            NO_FILES[student](path)
        else:
            path.write_bytes(ODD[student][0](data) if student in ODD else data)


def test_each_is_taken_or_named_with_its_reason(course, tmp_path, capsys) -> None:
    lay_out(tmp_path / "came", course)
    began_s = used_cpu_s()
    assert main(["collect", str(course.root), "00", "--folder", str(tmp_path / "came")]) == 1
    assert used_cpu_s() - began_s < MOST_CPU_S
    told = capsys.readouterr().out
    for student, said in reasons(NO_FILES_IN_A_FOLDER).items():
        (line,) = [line for line in told.splitlines() if f"'{student}/{LAB}.ipynb'" in line]
        assert line.startswith("refused ") and said in line
    taken = {path.parts[-3] for path in course.root.glob("submitted/*/*/*.ipynb")}
    assert taken == {"ada", "zoe", *(student for student, (_, said) in ODD.items() if said == GRADED)}


def test_what_somebody_put_there_by_hand_is_graded_or_named_with_its_reason(course, tmp_path) -> None:
    lay_out(tmp_path / "came", course)
    for student in (tmp_path / "came").iterdir():
        path = course.submitted(LAB, student.name)
        path.parent.mkdir(parents=True)
        for file in student.iterdir():
            file.rename(path)
    began_s = used_cpu_s()
    ungraded = grade(course, LAB, course.students(LAB), workers=1, isolation="none")
    assert used_cpu_s() - began_s < MOST_CPU_S
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 < MOST_BYTES
    found = {item.student: item.reason for item in ungraded}
    assert {item.outcome for item in ungraded} == {"unreadable"}
    assert found == {student: item["reason"] for student, item in read_ungraded(course, LAB).items()}
    expected = reasons(NO_FILES_BY_HAND)
    assert found.keys() == expected.keys()
    for student, said in expected.items():
        assert said in found[student]
    earned = {student: points(course, student)[CHECK] for student in course.students(LAB) if student not in found}
    assert earned.pop("nul-in-a-cell") == 0  # Python runs no such cell
    assert set(earned.values()) == {1} and {"ada", "zoe", "no-ids", "keys-twice", "large", "nested"} == set(earned)


def reasons(of_no_files: dict[str, str]) -> dict[str, str]:
    """What is said of each that cannot be taken."""
    said = {student: text for student, (_, text) in ODD.items() if text != GRADED} | of_no_files
    return {student: text for student, text in said.items() if student != "device" or os.geteuid() == 0}
