"""One slug, one file name: each half of an exercise is found by its id alone, and an error says what is misplaced."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import grading.hidden
import labkit.exercises
import labkit.oracles
from grading.hidden import Hidden
from labkit.exercises import Misplaced, UnknownExercise, declared, everything, find, ids_of_lab, of_lab
from labkit.spec import EXTRA_SHARE, Exercise, Oracle

PACKAGES = ((labkit.exercises, Exercise), (labkit.oracles, Oracle), (grading.hidden, Hidden))
ORDERED = tuple(everything())


@pytest.mark.parametrize("exercise_id", ORDERED)
def test_an_exercise_has_all_three_parts_where_its_id_says(exercise_id: str) -> None:
    for package, kind in PACKAGES:
        assert declared(package.__name__, exercise_id, kind).id == exercise_id


@pytest.mark.parametrize("package, kind", PACKAGES, ids=lambda one: one.__name__)
def test_nothing_is_declared_that_no_order_names(package, kind: type) -> None:
    found = {
        (module.__name__, one.id) for module in _files(package) for one in vars(module).values() if type(one) is kind
    }
    assert {exercise_id for _, exercise_id in found} == {*ORDERED}, "is its slug in ORDER of its lab's exercises?"


def test_a_lab_is_in_the_order_of_its_notebook() -> None:
    assert ids_of_lab("03")[:2] == ("03-underflow", "03-loss-scaler") == tuple(of_lab("03"))[:2]
    assert ids_of_lab("77") == () and of_lab("77") == {}
    with pytest.raises(UnknownExercise, match=r"known here: .*02-blocked-sum"):
        find("02_blocked_sum")
    with pytest.raises(UnknownExercise, match=r"an id begins with a lab's number, as 02-decode does"):
        find("decode")
    with pytest.raises(UnknownExercise, match=r"known here: 00-warm-up$"):
        find("00-cool-down")


@pytest.mark.parametrize("lab", sorted({exercise_id[:2] for exercise_id in ORDERED}))
def test_optional_exercises_add_up_to_a_tenth_of_the_lab_s_points_at_most(lab: str) -> None:
    worth = {kind: sum(one.points for one in of_lab(lab).values() if one.optional is kind) for kind in (False, True)}
    assert worth[True] <= EXTRA_SHARE * worth[False] + 1e-9, "the core alone is 100 %"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty lab 90, in a package with a name of its own for each test."""
    lab = tmp_path / tmp_path.name.replace("-", "_") / "lab90"
    lab.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    return lab


@pytest.mark.parametrize(
    "source, complaint",
    [
        (None, r'the exercise "90-add-up" has no file .*/lab90/add_up\.py$'),
        ("", r"/lab90/add_up\.py does not declare ADD_UP = Oracle\(\.\.\.\)$"),
        ("from labkit.spec import Oracle\nADDUP = Oracle('90-add-up')", r"does not declare ADD_UP = Oracle"),
        ("ADD_UP = '90-add-up'", r"does not declare ADD_UP = Oracle"),
        (
            "from labkit.spec import Oracle\nADD_UP = Oracle('90-sum')",
            r'add_up\.py declares the id "90-sum"; by its name it is that of "90-add-up"$',
        ),
    ],
)
def test_what_is_misplaced_is_named(course: Path, source: str | None, complaint: str) -> None:
    if source is not None:
        (course / "add_up.py").write_text(source)
    with pytest.raises(Misplaced, match=complaint):
        declared(course.parent.name, "90-add-up", Oracle)


def test_a_file_that_is_right_is_found_and_one_that_fails_to_import_is_not_missing(course: Path) -> None:
    (course / "add_up.py").write_text("from labkit.spec import Oracle\nADD_UP = Oracle('90-add-up')")
    (course / "other.py").write_text("import no_such_module_anywhere")
    assert declared(course.parent.name, "90-add-up", Oracle) == Oracle("90-add-up")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        declared(course.parent.name, "90-other", Oracle)


def test_an_order_that_names_what_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labkit.exercises.lab00.ORDER", ("warm-up", "cool-down"))
    with pytest.raises(Misplaced, match=r'"00-cool-down" has no file labkit/exercises/lab00/cool_down\.py'):
        of_lab("00")


def _files(package) -> Iterator:
    for lab in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if lab.ispkg:
            for file in pkgutil.iter_modules(importlib.import_module(lab.name).__path__, f"{lab.name}."):
                yield importlib.import_module(file.name)
