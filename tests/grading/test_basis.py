"""The basis of a grade: whatever changes a job's key is noticed from digests, without making the job anew.

Nothing is run: a graded notebook is written as the grader leaves it.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from grading.course import KEY_BYTES, Course
from grading.gradebook.provenance import METADATA, changes_since, metadata_of, recorded_basis
from grading.gradebook.writer import open_writer
from grading.submissions import attempt_of, prepare
from grading.supervisor import job as jobs
from grading.supervisor.result import SubmissionResult
from tests.grading.lessons import LAB, make_course, submit
from tests.module_imports import ROOT, imports

STUDENT = "ada"


def basis(course: Course) -> dict[str, str]:
    with open_writer(course, LAB, "none") as writer:
        return writer.basis.of(course, LAB, STUDENT, attempt_of(course, LAB, STUDENT))


def key(course: Course) -> str:
    jobs.grader_digest.cache_clear()
    return prepare(course, LAB, LAB, STUDENT).job.key


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """With one submission, graded without isolation."""
    course = make_course(tmp_path / "course")
    submit(course, STUDENT)
    result = SubmissionResult(key(course), LAB, STUDENT, exercises={}, cells={}, notes=())
    path = course.autograded(LAB, STUDENT)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"metadata": {METADATA: metadata_of(result, basis(course))}}))
    return course


def changes(course: Course) -> list[str]:
    jobs.grader_digest.cache_clear()
    old = recorded_basis(course.autograded(LAB, STUDENT))
    return changes_since(old, basis(course), has_row=True, may_be_none=True)


def another_submission(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    path = course.submitted(LAB, STUDENT)
    path.write_bytes(path.read_bytes() + b"\n")


def another_cell(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    path = course.source(LAB)
    path.write_text(path.read_text().replace("unchanged = 1", "unchanged = 2"))


def another_course_key(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    path = course.root / ".grading" / "course.key"
    path.chmod(0o600)
    path.write_bytes(bytes(KEY_BYTES))


def another_version(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    really = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.1" if name == "torch" else really(name))


def another_source(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte more in the module that makes jobs."""
    really = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        return really(path) + b"#" * (path.name == "submissions.py")

    monkeypatch.setattr(Path, "read_bytes", read_bytes)


NOTICED = {
    another_submission: ["submission"],
    another_cell: ["lab"],
    another_course_key: ["course key"],
    another_version: ["environment"],
    another_source: ["grader"],
}


@pytest.mark.slow
@pytest.mark.parametrize("change", NOTICED)
def test_what_changes_the_key_changes_the_basis(
    course: Course, monkeypatch: pytest.MonkeyPatch, change: Callable[[Course, pytest.MonkeyPatch], None]
) -> None:
    before = key(course)
    assert changes(course) == []
    change(course, monkeypatch)
    assert changes(course) == NOTICED[change]
    assert key(course) != before
    jobs.grader_digest.cache_clear()


@pytest.mark.slow
def test_the_configuration_and_the_time_count_beside_the_key(course: Course) -> None:
    before = key(course)
    course.config.write_text(course.config.read_text() + "\n# later\n")
    course.submitted(LAB, STUDENT).with_name("timestamp.txt").write_text("2026-01-01 12:00:00 UTC")
    assert changes(course) == ["configuration", "time of submission"]
    assert key(course) == before


RECORDED = {"grading.course", "grading.intake.store", "grading.intake.timestamp", "grading.build", "grading.errors"}
"""Read for what they return, of which the basis has a digest or a text: the template's cells, the key, the time, and
where an archived notebook lies, whose digest is its name.
"""
REFUSES = {"grading.intake.names"}
"""It says whether a job is made, never what is in it; what was refused has no grade that could stand."""
MAKE_JOBS = ("submissions", "rebuild.submission", "rebuild.template", "rebuild.merge", "supervisor.job")


def test_every_module_that_makes_a_job_is_in_the_graders_digest() -> None:
    digested = {ROOT / "grading" / name for name in jobs.RESULT_BEARING}
    waiting, seen = [f"grading.{name}" for name in MAKE_JOBS], set()
    while waiting:
        name = waiting.pop()
        path = ROOT.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        skipped = any(f"{name}.".startswith(f"{other}.") for other in RECORDED | REFUSES)
        if name in seen or skipped or not name.startswith("grading.") or not file.exists():
            continue
        seen.add(name)
        waiting += [one.name for one in imports(file)]
        assert digested & {file, *file.parents}, f"{name} is not in grading.supervisor.job.RESULT_BEARING"
    assert seen > {"grading.files", "grading.submissions", "grading.rebuild.merge", "grading.worker.protocol.steps"}
