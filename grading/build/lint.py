"""Every reason to refuse a source, all at once, each with its file and line.

The judging itself is in `lint_cells` (one cell), `lint_exercises` (cells against declarations) and `lint_stubs`
(what students are left with), `lint_predictions` and `lint_pace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from grading.build.lint_cells import cell_problems
from grading.build.lint_exercises import exercise_problems
from grading.build.lint_pace import pace_problems
from grading.build.lint_predictions import prediction_problems
from grading.build.lint_stubs import stub_problems
from grading.build.source import BadSource, Problem, Source, read
from labkit.exercises import of_lab
from labkit.spec import Exercise


def problems(path: Path, exercises: Mapping[str, Exercise] | None = None) -> list[Problem]:
    """What is wrong with the source at `path`, by line; `exercises` are the lab's own unless given."""
    try:
        source = read(Path(path))
    except BadSource as error:
        return error.problems
    return problems_of(source, of_lab(source.lab) if exercises is None else exercises)


def problems_of(source: Source, exercises: Mapping[str, Exercise]) -> list[Problem]:
    """The same for a source that has been read."""
    found = [
        problem
        for rules in (cell_problems, exercise_problems, stub_problems, pace_problems)
        for problem in rules(source, exercises)
    ]
    found += prediction_problems(source)
    return sorted(dict.fromkeys(found), key=lambda problem: problem.line)
