"""Every exercise's first half: what is asked, fed and run. One module a lab, found by the number in the id.

What is true of an answer stands in `labkit.oracles`, under the same id; this package never imports it.
"""

from __future__ import annotations

import importlib
import pkgutil
import re

from labkit.spec import Exercise

ID = re.compile(r"(?P<lab>\d\d)-[a-z0-9]+(-[a-z0-9]+)*")


class UnknownExercise(KeyError):
    """No exercise has this id; the message lists the ids of that lab."""

    def __str__(self) -> str:
        return self.args[0]


def of_lab(lab: str) -> dict[str, Exercise]:
    """The exercises of lab "02" by id, in the order of their declaration; empty for a lab that has none."""
    return declared_in(__name__, lab, Exercise)


def find(exercise_id: str) -> Exercise:
    """The exercise with this id. Raises UnknownExercise, which names the ids that do exist."""
    match = ID.fullmatch(exercise_id)
    exercises = of_lab(match["lab"]) if match else {}
    if exercise_id not in exercises:
        known = ", ".join(exercises) or "none in that lab"
        raise UnknownExercise(f'there is no exercise "{exercise_id}"; known here: {known}')
    return exercises[exercise_id]


def everything() -> dict[str, Exercise]:
    """Every declared exercise by id, in course order."""
    labs = sorted(name.removeprefix("lab") for _, name, _ in pkgutil.iter_modules(__path__) if name.startswith("lab"))
    return {exercise_id: exercise for lab in labs for exercise_id, exercise in of_lab(lab).items()}


def declared_in(package: str, lab: str, kind: type) -> dict:
    """The module-level `kind` objects of `package.labNN` by id."""
    module_name = f"{package}.lab{lab}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name:
            return {}
        raise
    return {item.id: item for item in vars(module).values() if isinstance(item, kind)}
