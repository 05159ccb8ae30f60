"""The same class has the same grades on every tier, for any number of workers, in any order, and graded anew.

Compared is all that a grade consists of: outcomes, scores, every verdict's text, what cells printed, and the points in
the gradebook.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from grading.course import Course
from grading.demo import handins
from grading.demo.answers import answers_of
from grading.gradebook.setup import release, set_up
from grading.isolation.probe import try_tier
from grading.isolation.tiers import NONE, TIERS, isolates, tier_named
from grading.supervisor import Sandbox
from grading.supervisor.attempts import run_steps
from grading.worker.protocol.steps import RunCode
from tests.grading import lessons
from tests.grading.lessons import grade

pytestmark = pytest.mark.full("determinism")
WRONG = "def rms(x, dim): return x.pow(2).mean().sqrt()"
NOISY = "import warnings\nwarnings.warn('mind this')\nprint({1, 2})\n"
SMALL = {
    "right": lessons.SOLUTION,
    "wrong": WRONG,
    "blank": None,
    "noisy": NOISY + lessons.SOLUTION,
    "raises": "def rms(x, dim): raise ValueError(x)",
    "ends": "import os\n" + lessons.SOLUTION.replace("    return", "    os._exit(1)\n    return"),
    "random": "import torch\n" + lessons.SOLUTION.replace("    return", "    x = x + torch.rand(())\n    return"),
}
WAYS = (handins.perfect, handins.partly_wrong, handins.own_style, handins.partly_wrong)

WORKERS = {"layered": 3, "kernel": 2, "bwrap": 4}
"""How many to grade the small class with in each tier; each order is another one."""


def works(tier: str) -> bool:
    return not isolates(tier) or try_tier(tier_named(tier)).works


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Course:
    course = lessons.make_course(tmp_path_factory.mktemp("small") / "course")
    for student, answer in SMALL.items():
        lessons.submit(course, student, answer)
    return course


@pytest.fixture(scope="module")
def lab02(tmp_path_factory) -> Course:
    course = set_up(tmp_path_factory.mktemp("lab02") / "course", "same", labs=["02"])
    lab = course.lab("02")
    release(course, [lab])
    answers = answers_of(course, lab)
    for number, way in enumerate(WAYS):
        path = course.submitted(lab, f"student-{number}")
        path.parent.mkdir(parents=True)
        path.write_text(way(answers, random.Random(number)).text)
    return course


def graded(pristine: Course, root: Path, lab: str, tier: str, workers: int) -> dict[str, object]:
    """A copy of the class graded in this way, in an order that the number of workers and the tier decide."""
    shutil.copytree(pristine.root, root)
    course = Course.at(root)
    return regraded(course, lab, tier, workers)


def regraded(course: Course, lab: str, tier: str, workers: int) -> dict[str, object]:
    students = course.students(lab)
    random.Random(f"{tier} {workers}").shuffle(students)
    assert grade(course, lab, students, workers, tier) == []
    return grades(course, lab)


def grades(course: Course, lab: str) -> dict[str, object]:
    """By student: the stored result, less what was measured of the run, the points, and the notebook's outputs."""
    stored = [json.loads(path.read_text()) for path in (course.root / ".grading" / "results" / lab).glob("*.json")]
    lasting = [{name: one[name] for name in one.keys() - {"usage", "isolation"}} for one in stored]
    found: dict[str, object] = {f"result of {one['student']}": one for one in lasting}
    for student in course.students(lab):
        cells = nbformat.read(course.autograded(lab, student), as_version=4).cells
        found[f"notebook of {student}"] = [(cell.id, cell.source, cell.get("outputs")) for cell in cells]
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        for sent in gradebook.assignment_submissions(lab):
            rows = [row for notebook in sent.notebooks for row in notebook.grades]
            points = {row.name: (row.auto_score, row.max_score, row.needs_manual_grade) for row in rows}
            found[f"points of {sent.student_id}"] = points
    return found


def differences(one: dict[str, object], other: dict[str, object]) -> list[str]:
    return [f"{name}: {one.get(name)} | {other.get(name)}" for name in one | other if one.get(name) != other.get(name)]


def outcomes(found: dict[str, object]) -> set[str]:
    results = [one for name, one in found.items() if name.startswith("result of")]
    return {each["public"]["outcome"] for one in results for each in one["exercises"].values()}


@pytest.fixture(scope="module")
def reference(small, tmp_path_factory) -> tuple[Course, dict[str, object]]:
    """The small class graded without isolation, one at a time, and its grades."""
    root = tmp_path_factory.mktemp("reference") / "course"
    found = graded(small, root, lessons.LAB, "none", 1)
    assert len(found) == 3 * len(SMALL)
    assert outcomes(found) == {"passed", "failed", "unanswered", "limit"}
    return Course.at(root), found


@pytest.mark.parametrize("tier", WORKERS)
def test_tier_workers_and_order_change_no_grade(tier, small, reference, tmp_path) -> None:
    if not works(tier):
        pytest.skip(f"{tier} does not work here: {try_tier(tier_named(tier)).reason}")
    found = graded(small, tmp_path / "course", lessons.LAB, tier, WORKERS[tier])
    assert differences(reference[1], found) == []


def test_tiers_agree_on_a_whole_lab(lab02, tmp_path) -> None:
    lab = lab02.lab("02")
    tiers = [tier for tier in (*TIERS, "none") if works(tier)][:2]
    found = [graded(lab02, tmp_path / tier, lab, tier, 2) for tier in tiers]
    assert len(found[0]) == 3 * len(WAYS) and outcomes(found[0]) >= {"passed", "failed", "unanswered"}
    for other in found[1:]:
        assert differences(found[0], other) == []


def test_grading_anew_changes_no_grade(reference) -> None:
    course, first = reference
    # A grade that is written stands, and so does a stored result: only without both is everything run again.
    shutil.rmtree(course.root / ".grading" / "results")
    shutil.rmtree(course.root / "autograded")
    tier = "bwrap" if works("bwrap") else "none"
    assert differences(first, regraded(course, lessons.LAB, tier, 2)) == []


def test_strings_have_the_same_hash_in_every_run() -> None:
    """Or an answer that goes through a set of strings would meet them in another order each time."""
    step = RunCode("one", "print([hash(str(n)) for n in range(8)])")
    printed = []
    for _ in range(2):
        with Sandbox(NONE, preload=()) as sandbox:
            cell = run_steps(sandbox, [step], {}).cells["one"]
        assert cell.ok, cell.error
        printed.append(cell.printed)
    assert printed[0] == printed[1]


def test_a_grade_that_differs_is_seen() -> None:
    """Their own control."""
    assert differences({"points of a": {"x": 1}, "b": 2}, {"points of a": {"x": 0}, "b": 2}) == [
        "points of a: {'x': 1} | {'x': 0}"
    ]
