"""What must hold of a lab's pace: its opening says how long it takes, and good places to stop lie between exercises.

Whether the minutes are true is not judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grading.build.directives import STOP, TIME, directives
from grading.build.source import Problem, Source
from labkit.labs import find_lab
from labkit.spec import Exercise


def pace_problems(source: Source, exercises: Mapping[str, Exercise]) -> Iterator[Problem]:
    """Everything wrong with [[time]] and [[stop]] of a lab that has declared minutes."""
    try:
        lab = find_lab(source.lab)
    except KeyError:
        yield Problem(source.file, 1, f"lab {source.lab} is not declared, in labkit/labs.py or by a lab.toml")
        return
    except ValueError as error:
        yield Problem(source.file, 1, str(error))
        return
    if not lab.stands:
        return
    where = {
        wanted: [i for i, cell in enumerate(source.cells) if cell.kind == "markdown" and says(cell.source, wanted)]
        for wanted in (TIME, STOP)
    }
    if where[TIME] != [0]:
        yield Problem(source.file, 1, f"the lab's opening, and nothing else, says how long it takes: [[{TIME}]]")
    core = [exercise.id for exercise in exercises.values() if not exercise.optional]
    checks = [i for i, cell in enumerate(source.cells) if (cell.grade_id or "").removesuffix("-check") in core]
    if len(core) > 1 and not where[STOP]:
        reason = f"no good place to stop: put [[{STOP}]] behind the first sitting's last core exercise"
        yield Problem(source.file, 1, reason)
    for place in where[STOP]:
        if not checks or not checks[0] < place < checks[-1]:
            yield source.problem(source.cells[place], f"[[{STOP}]] does not stand between two core exercises")


def says(text: str, wanted: str) -> bool:
    return any(found == wanted for _, found in directives(text))
