"""Which packages there are is part of what a grade rests on, and a lab whose packages are missing is not graded."""

from __future__ import annotations

import importlib.metadata
import os
import sysconfig
from pathlib import Path

import pytest

import grading.supervisor.packages as packages
from grading.errors import UserError
from grading.executors.on_worker import Census, facts, unfit
from grading.gradebook.provenance import environment
from grading.pipeline.entries import environment as logged_environment
from grading.rebuild import read_template
from grading.supervisor.job import grader_digest
from tests.grading.lessons import LAB, grade, make_course, submit

REPOSITORY = Path(__file__).resolve().parents[2]
SOLVED = sorted(path.stem for path in (REPOSITORY / "notebooks").glob("[0-9]*.ipynb"))


def installed_otherwise(monkeypatch, name: str, version: str | None) -> None:
    """Have the package in this version, or not at all."""
    really = importlib.metadata.version

    def told(asked: str) -> str:
        if asked != name:
            return really(asked)
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", told)


@pytest.mark.parametrize("name", packages.PACKAGES)
def test_every_package_counts(monkeypatch, name) -> None:
    before = grader_digest.__wrapped__(), environment(), logged_environment.__wrapped__()
    for version in ("0.0.1", None):
        installed_otherwise(monkeypatch, name, version)
        now = grader_digest.__wrapped__(), environment(), logged_environment.__wrapped__()
        assert all(one != other for one, other in zip(before, now, strict=True))
        assert f"{name} {version or 'absent'}" in environment()


def test_a_worker_without_a_package_is_told_so_and_not_that_its_checkout_differs(monkeypatch) -> None:
    expected = facts()
    installed_otherwise(monkeypatch, "peft", None)
    monkeypatch.setattr("grading.supervisor.job.grader_digest", lambda: "another")
    told = unfit(Census("node7", 1, facts(), ""), expected)
    assert told == f"its peft is absent, this machine's is {expected['peft']}"


def test_what_a_cell_imports_whatever_happens_has_to_be_there() -> None:
    cells = [
        "%matplotlib inline\nimport nowhere_a.part as a, sys, _json, math, labkit.figures, torch.nn as nn",
        "from nowhere_b.part import c\nfrom . import nowhere_c",
        "try:\n    import nowhere_d\nexcept ImportError:\n    nowhere_d = None",
        "def late():\n    import nowhere_e",
        "%%writefile own_module.py\nx = 1",
        "import own_module",
        "this is (no Python\nimport nowhere_f",
    ]
    assert packages.absent_imports(cells) == ["nowhere_a", "nowhere_b"]


@pytest.mark.parametrize("lab", SOLVED)
def test_the_labs_import_nothing_that_is_not_installed_here(lab) -> None:
    template = read_template(REPOSITORY / "notebooks" / f"{lab}.ipynb")
    assert packages.absent_imports([cell.source for cell in template.cells if cell.cell_type == "code"]) == []


@pytest.mark.slow
def test_a_lab_whose_package_is_missing_is_refused_and_nobody_gets_zero_points(monkeypatch, tmp_path) -> None:
    course = make_course(tmp_path / "course")
    submit(course, "ada")
    standard = [sysconfig.get_path("stdlib"), os.path.join(sysconfig.get_path("stdlib"), "lib-dynload")]
    monkeypatch.setattr(packages, "library_paths", lambda: standard)
    with pytest.raises(UserError, match=rf"^{LAB} imports torch, which this machine does not have: make setup"):
        grade(course, LAB, ["ada"], workers=1, isolation="none")
    assert not course.autograded(LAB, "ada").exists()
