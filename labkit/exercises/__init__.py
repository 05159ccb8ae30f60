"""Every exercise's first half: what is asked, given and run.

Exercise "02-blocked-sum" is the object `BLOCKED_SUM` in `lab02/blocked_sum.py`. Its second half, in `labkit.oracles`,
and its hidden cases, in `grading.hidden`, have the same two names. The order of a lab's exercises is `ORDER` in its
`lab02/__init__.py`; no other list of them exists. This package never imports what is true of an answer.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import TypeVar

from labkit.spec import Exercise

ID = re.compile(r"(?P<lab>\d\d)-[a-z0-9]+(-[a-z0-9]+)*")
Half = TypeVar("Half")


class UnknownExercise(KeyError):
    """No exercise has this id; the message lists the ids of that lab."""

    def __str__(self) -> str:
        return self.args[0]


class Misplaced(LookupError):
    """A half of an exercise is not where its id says; the message names the file, the object or the id."""


def ids_of_lab(lab: str) -> tuple[str, ...]:
    """The ids of lab "02"'s exercises, in the order of its notebook; empty for a lab that has none."""
    package = f"{__name__}.lab{lab}"
    try:
        order = importlib.import_module(package).ORDER
    except ModuleNotFoundError as error:
        if error.name == package:
            return ()
        raise
    return tuple(f"{lab}-{slug}" for slug in order)


def of_lab(lab: str) -> dict[str, Exercise]:
    """The exercises of lab "02" by id, in the order of its notebook; empty for a lab that has none."""
    return {exercise_id: declared(__name__, exercise_id, Exercise) for exercise_id in ids_of_lab(lab)}


def find(exercise_id: str) -> Exercise:
    """The exercise with this id. Raises UnknownExercise, which names the ids that do exist."""
    lab = re.match(r"\d\d", exercise_id)
    ids = ids_of_lab(lab[0]) if lab else ()
    if exercise_id not in ids:
        known = f"known here: {', '.join(ids)}" if ids else "an id begins with a lab's number, as 02-decode does"
        raise UnknownExercise(f'there is no exercise "{exercise_id}"; {known}')
    return declared(__name__, exercise_id, Exercise)


def everything() -> dict[str, Exercise]:
    """Every declared exercise by id, in course order."""
    labs = sorted(name.removeprefix("lab") for _, name, _ in pkgutil.iter_modules(__path__) if name.startswith("lab"))
    return {exercise_id: exercise for lab in labs for exercise_id, exercise in of_lab(lab).items()}


def declared(package: str, exercise_id: str, kind: type[Half]) -> Half:
    """What `package` declares for an exercise: the object `SOME_SLUG` in `package.labNN.some_slug`.

    Raises Misplaced where there is no such file, no such object of that kind in it, or where it has another id.
    """
    lab, _, slug = exercise_id.partition("-")
    name = slug.replace("-", "_")
    module_name = f"{package}.lab{lab}.{name}"
    file = module_name.replace(".", "/") + ".py"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the file is there, and something that it imports is not
        raise Misplaced(f'the exercise "{exercise_id}" has no file {file}') from None
    half = vars(module).get(name.upper())
    if not isinstance(half, kind):
        raise Misplaced(f"{file} does not declare {name.upper()} = {kind.__name__}(...)")
    if half.id != exercise_id:
        raise Misplaced(f'{file} declares the id "{half.id}"; by its name it is that of "{exercise_id}"')
    return half
