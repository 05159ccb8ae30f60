"""The answers of a class to one lab: the text of their cells alone, with the given cell as what everybody has.

A kernel in CUDA C++ stands in the notebook as one text; it is taken out of it. Which answers are alike is not asked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from grading.course import Course
from grading.files import Unreadable
from grading.rebuild import Template
from grading.submissions import Prepared, prepare
from labkit import exercises
from labkit.spec import Exercise

PYTHON, CUDA = "python", "cuda"
SUFFIXES = {PYTHON: ".py", CUDA: ".cu"}


@dataclass(frozen=True)
class Program:
    """An answer's text and its language.

    Program("def decode(bits, fmt):\\n    return ...\\n", "python")
    """

    text: str
    language: str = PYTHON


@dataclass
class Answers:
    """One exercise: what was given, and who answered what. Whoever left it as it was given is not among them."""

    exercise: str
    base: Program
    by_student: dict[str, Program] = field(default_factory=dict)


@dataclass
class ClassAnswers:
    """A lab's exercises in the notebook's order, and whose submission cannot be read, with the reason."""

    lab: str
    exercises: list[Answers]
    unreadable: dict[str, str] = field(default_factory=dict)


def read_answers(course: Course, lab: str) -> ClassAnswers:
    """From what is submitted now. Nothing is run. Raises UserError where the lab has no source."""
    template = course.template(lab)
    found = ClassAnswers(lab, [Answers(exercise.id, _given(template, exercise)) for exercise in _exercises(template)])
    for student in course.students(lab):
        try:
            prepared = prepare(course, lab, lab, student)
        except Unreadable as error:
            found.unreadable[student] = str(error)
            continue
        for answers in found.exercises:
            program = _of(prepared, exercises.find(answers.exercise))
            if program.text.strip() and program != answers.base:
                answers.by_student[student] = program
    return found


def program_of(source: str) -> Program:
    """A cell's text as a program: of a cell that only binds one text, as an answer in CUDA C++ does, the text."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Program(source)
    only = body[0] if len(body) == 1 else None
    if isinstance(only, ast.Assign) and isinstance(only.value, ast.Constant) and isinstance(only.value.value, str):
        return Program(only.value.value, CUDA)
    return Program(source)


def _exercises(template: Template) -> Iterator[Exercise]:
    for cell in template.exercises:
        if cell.exercise:
            yield exercises.find(cell.exercise)


def _given(template: Template, exercise: Exercise) -> Program:
    cells = {cell.id: cell.source for cell in template.cells}
    return _joined([cells[name] for name in cells_of(exercise) if name in cells])


def _of(prepared: Prepared, exercise: Exercise) -> Program:
    cells = {cell.id: cell.source for cell in prepared.merged.cells}
    return _joined([cells[name] for name in cells_of(exercise) if name in cells])


def cells_of(exercise: Exercise) -> list[str]:
    """The ids of the cells that hold its answers, each once."""
    return list(dict.fromkeys(answer.cell or exercise.id for answer in exercise.answers))


def _joined(sources: list[str]) -> Program:
    programs = [program_of(source) for source in sources]
    languages = {program.language for program in programs}
    if len(languages) == 1:
        return Program("\n\n".join(program.text for program in programs), *languages)
    return Program("\n\n".join(sources))
