"""Classes to measure a grader with: a released lab, and submissions as the demo makes them, the same for each seed.

Every other folder of a class is a copy of its files, so each grader starts from the same. Nothing is graded here.
"""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import nbformat

from grading.course import Course
from grading.demo import handins
from grading.demo.answers import LabAnswers, answers_of
from grading.demo.handins import DemoSubmission
from grading.gradebook.setup import config_text, release, set_up
from grading.verify.stock import CONFIG as STOCK_CONFIG
from tests.grading import lessons

SEED = 2026
TRIVIAL = lessons.LAB
MIX = (handins.partly_wrong,) * 5 + (handins.perfect,) * 3 + (handins.own_style, handins.blank)
"""What ten students hand in, in some order."""


@dataclass(frozen=True)
class Class:
    """A released course without submissions, one lab of it, and what each student hands in."""

    course: Course
    lab: str
    made: Mapping[str, DemoSubmission]

    @property
    def students(self) -> tuple[str, ...]:
        return tuple(self.made)

    def fill(self, root: Path, students: Sequence[str], is_stock: bool = False) -> Course:
        """A course of its own in `root` with these students' submissions.

        is_stock: with the configuration of a course that knows nothing of our grader.
        """
        shutil.copytree(self.course.root, root)
        if is_stock:
            (root / self.course.config.name).write_text(STOCK_CONFIG.format(root=str(root)))
        else:
            (root / self.course.config.name).write_text(config_text("measured"))
        course = Course.at(root)
        for student in students:
            path = course.submitted(self.lab, student)
            path.parent.mkdir(parents=True)
            path.write_text(self.made[student].text, encoding="utf-8")
        return course


def make_course(folder: Path, lab: str) -> tuple[Course, str]:
    """A course in the new folder with a lab released ("02", or TRIVIAL, which has one exercise), and its full name."""
    with contextlib.redirect_stdout(io.StringIO()):
        if lab != TRIVIAL:
            course = set_up(folder, "measured")
        else:
            course = _trivial(folder)
        name = course.lab(lab)
        release(course, [name])
    return course, name


def _trivial(folder: Path) -> Course:
    notebook = lessons.solved()
    # The set-up, the answer and its check; the rest is there to be tested.
    notebook.cells = notebook.cells[:3]
    path = folder / "source" / TRIVIAL / f"{TRIVIAL}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    (folder / "nbgrader_config.py").write_text(config_text("measured"))
    course = Course.at(folder)
    course.make_key()
    return course


def mixed_class(course: Course, lab: str, n: int) -> Class:
    """n students who solve, half solve, leave blank; any ten in a row (1 to 10, 11 to 20, ...) are such a mix."""
    answers, made = answers_of(course, lab), {}
    order = Random(f"{SEED} {lab}")
    while len(made) < n:
        for way in order.sample(MIX, len(MIX))[: n - len(made)]:
            student = f"student-{len(made) + 1:04d}"
            made[student] = way(answers, Random(f"{SEED} {lab} {student}"))
    return Class(course, lab, made)


def right_class(course: Course, lab: str, n: int, own_style: bool = True) -> Class:
    """n students who solve everything: by turns with our solutions and, unless told otherwise, in ways of their own."""
    answers = answers_of(course, lab)
    return Class(course, lab, {f"student-{i + 1:04d}": _right(answers, i, own_style) for i in range(n)})


def _right(answers: LabAnswers, i: int, own_style: bool) -> DemoSubmission:
    way = handins.own_style if own_style and i % 2 else handins.perfect
    return way(answers, Random(f"{SEED} {answers.lab} {i}"))
