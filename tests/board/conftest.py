"""The contest that these tests look at, graded once in each process: they copy what they change."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grading.course import Course
from tests.board.contest import EVIL, FORMULA, contest, empty_contest, graded, hand_in, script
from tests.grading.lab94.oracles import DOUBTED


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven students: two who tie, one who handed in twice, one doubted, one without points, one blank."""
    with contest():
        course = empty_contest(tmp_path_factory.mktemp("board") / "course")
        hand_in(course, "ada", script(60, changed="fewer steps"))
        hand_in(course, "bob", script(60, changed=EVIL, more="# the same hours\n"))
        hand_in(course, "eve", script(40, changed=DOUBTED))
        hand_in(course, "=fay", script(80, changed=FORMULA))
        hand_in(course, "gus", script(301, changed="too slow for a point"))
        hand_in(course, "hal", None)
        hand_in(course, "ida", script(70))
        graded(course)
        hand_in(course, "ida", script(50, changed="half the steps"), when="2026-03-09 10:00:00")
        hand_in(course, "ada", script(200, machine="v100"), when="2026-03-02 10:00:00")
        graded(course, "ida", "ada")
    return course.root


@pytest.fixture
def course(pristine: Path, tmp_path: Path) -> Iterator[Course]:
    shutil.copytree(pristine, tmp_path / "course")
    with contest():
        yield Course.at(tmp_path / "course")
