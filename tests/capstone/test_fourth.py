"""The fourth machine: there where its file is, and not before a course hands it out."""

from __future__ import annotations

import zipfile
from pathlib import Path

from grading.build.bundle import make_bundle
from labkit.capstone import MACHINES, ghosts
from labkit.capstone.machine import FOURTH, machines_with, read_fourth


def test_without_its_file_there_are_three(tmp_path: Path) -> None:
    three = machines_with(read_fourth(tmp_path / "fourth.json"))
    fourth = read_fourth()["machine"]["name"]
    assert list(three) == ["basement", "v100", "quad"] and list(MACHINES) == [*three, fourth]
    assert set(ghosts()[fourth]) == {"naive", "bronze", "silver"}


def test_the_students_archive_is_without_it(tmp_path: Path) -> None:
    make_bundle(tmp_path / "labs.zip")
    names = {Path(name).name for name in zipfile.ZipFile(tmp_path / "labs.zip").namelist()}
    assert "ghosts.json" in names and FOURTH.name not in names
