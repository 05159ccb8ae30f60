"""What a worker does with a notebook, step by step: the form of a cell from the rebuilt notebook to its worker.

No step says what is expected of it, or what it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from labkit.spec import Tree


@dataclass(frozen=True)
class RunCode:
    """Run a cell: `RunCode("02-sum", "def total(x):\\n    return x.sum()")`."""

    cell_id: str
    source: str


@dataclass(frozen=True)
class RunTest:
    """Run a plain nbgrader test, whose last value may be partial credit: `RunTest("old-test", "assert a == 3")`."""

    cell_id: str
    source: str


@dataclass(frozen=True)
class ServeExercise:
    """Take an exercise's cases, at the place of its check: `ServeExercise("02-sum-check", "02-sum")`.

    texts: the answers that are the text of their cell, by name: `{"script": "import torch\\n..."}`.
    """

    cell_id: str
    exercise_id: str
    texts: Mapping[str, str] = field(default_factory=dict)


Step = RunCode | RunTest | ServeExercise
_BY_NAME = {"code": RunCode, "test": RunTest, "exercise": ServeExercise}
_NAMES = {kind: name for name, kind in _BY_NAME.items()}


def step_to_tree(step: Step) -> dict[str, Tree]:
    """As in `{"do": "code", "cell_id": "02-sum", "source": "..."}`."""
    return {"do": _NAMES[type(step)], **asdict(step)}


def step_from_tree(tree: dict[str, Tree]) -> Step:
    """The step that `step_to_tree` wrote. Raises KeyError or TypeError for any other tree."""
    parts = dict(tree)
    return _BY_NAME[parts.pop("do")](**parts)


def exercise_of(step: Step) -> str | None:
    """The id of the exercise that this step serves, if it is one that does."""
    return step.exercise_id if isinstance(step, ServeExercise) else None
