"""From a source to its two notebooks, or to every reason why not. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from grading.build.adapt import BadAdaptation, adapt, wrong_names
from grading.build.adaptation import Adaptation
from grading.build.lint import problems_of
from grading.build.notebook import notebook_of, to_json
from grading.build.source import BadSource, Problem, read
from grading.build.student import student_version
from labkit.exercises import of_lab
from labkit.labs import find_lab
from labkit.spec import Exercise


@dataclass(frozen=True)
class Built:
    """The notebooks of one source; `name` is theirs, without a suffix."""

    name: str
    solution: NotebookNode
    student: NotebookNode


def build(path: Path, exercises: Mapping[str, Exercise] | None = None, wanted: Adaptation | None = None) -> Built:
    """Both notebooks of a source; `exercises` are the lab's own unless given.

    wanted: what a course changes of it; only what is about this lab counts. Raises BadSource, BadAdaptation.
    """
    source = read(Path(path))
    declared = of_lab(source.lab) if exercises is None else exercises
    found = problems_of(source, declared)
    if found:
        raise BadSource(found)
    wanted = (wanted or Adaptation()).of_lab(source.lab)
    if not (wanted.leave_out or wanted.points):
        solution = notebook_of(source, declared)
    elif wrong := wrong_names(source, declared, wanted):
        raise BadAdaptation("; ".join(wrong))
    else:
        adapted = adapt(source, declared, find_lab(source.lab), wanted)
        solution = notebook_of(adapted.source, adapted.exercises, adapted.lab)
    return Built(source.name, solution, student_version(solution))


def build_all(paths: list[Path], exercises: Mapping[str, Exercise] | None = None) -> list[Built]:
    """Every source's notebooks; `exercises` are the course's own unless given.

    Raises BadSource with the problems of all sources together.
    """
    built: list[Built] = []
    refused: list[Problem] = []
    for path in paths:
        try:
            built.append(build(path, None if exercises is None else of_same_lab(path, exercises)))
        except BadSource as error:
            refused += error.problems
    if refused:
        raise BadSource(refused)
    return built


def student_files(root: Path, built: list[Built]) -> dict[Path, str]:
    """What `notebooks/` of the checkout at `root` should hold: the students' notebooks, by path."""
    return {root / "notebooks" / f"{each.name}.ipynb": to_json(each.student) for each in built}


def of_same_lab(path: Path, exercises: Mapping[str, Exercise]) -> dict[str, Exercise]:
    """Those of the lab that the file's name begins with."""
    return {name: exercise for name, exercise in exercises.items() if name[:2] == path.name[:2]}
