"""Answers of other shapes than one function: which may be asked, and which would not stop a blank notebook."""

from dataclasses import replace

import pytest

from grading.build import problems
from labkit.spec import Answer
from tests.build import lesson
from tests.build.lesson import EXERCISES, check, declared, exercise, solution, text
from tests.build.refused import GUESS

# Answers of other shapes: (declared answers, solution cell, what is wrong or None)
CLASS = "class Meter:\n    def __init__(self):\n        self.total = 0\n    def add(self, x):\n        {}\n"
BODY = "### BEGIN SOLUTION\n        self.total += x\n        ### END SOLUTION"
SHAPES = {
    "a class with one blank method": ([Answer("Meter")], CLASS.format(BODY), None),
    "a class given whole": (
        [Answer("Meter")],
        CLASS.format("self.total += x") + "### BEGIN SOLUTION\nother = 1\n### END SOLUTION",
        None,  # the cell itself raises before the class is of any use
    ),
    "two functions, one of them given": (
        [Answer("one"), Answer("two")],
        "def one():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\ndef two():\n    return 2",
        "the stub of two would not raise NotImplementedError",
    ),
    "two functions, both blank": (
        [Answer("one"), Answer("two")],
        "def one():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n"
        "def two():\n    ### BEGIN SOLUTION\n    return 2\n    ### END SOLUTION",
        None,
    ),
    "a decorator, blank inside": (
        [Answer("twice")],
        "def twice(f):\n    def inner(x):\n        ### BEGIN SOLUTION\n        return f(f(x))\n"
        "        ### END SOLUTION\n    return inner",
        None,
    ),
    "a loop with a blank body": (
        [Answer("total")],
        "def total(xs):\n    out = 0\n    for x in xs:\n        ### BEGIN SOLUTION\n        out += x\n"
        "        ### END SOLUTION\n    return out",
        None,
    ),
    "a context manager around the blank": (
        [Answer("total")],
        "def total(xs):\n    with open(xs):\n        ### BEGIN SOLUTION\n        return 1\n        ### END SOLUTION",
        None,
    ),
    "the whole function between the markers": (
        [Answer("total")],
        "### BEGIN SOLUTION\ndef total(xs):\n    return sum(xs)\n### END SOLUTION",
        None,
    ),
    "a text answer": ([Answer("script", kind="text")], "### BEGIN SOLUTION\nprint(1)\n### END SOLUTION", None),
    "an unpacked value": (
        [Answer("a", kind="value"), Answer("b", kind="value")],
        "### BEGIN SOLUTION\na, b = 1, 2\n### END SOLUTION",
        None,
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_answers_of_other_shapes(tmp_path, name):
    answers, code, reason = SHAPES[name]
    arguments = [answer.name if answer.kind != "text" else "In[-1]" for answer in answers]
    body = "\n".join(
        [
            text(f"[[exercise 20-other]]\n{lesson.HINTS}"),
            solution("20-other", code),
            check("20-other", 2, *arguments),
        ]
    )
    found = problems(lesson.write(tmp_path, body), declared(exercise("other", *answers)))
    assert [problem.reason for problem in found] == ([reason] if reason else [])


def test_an_answer_in_another_cell(tmp_path):
    apart = replace(GUESS, answers=(*GUESS.answers, Answer("why", kind="value", cell="20-reason")))
    exercises = EXERCISES | {apart.id: apart}
    called = check("20-guess", 0.5, "guess", "why")
    reason = solution("20-reason", '### BEGIN SOLUTION\nwhy = "rounding"\n### END SOLUTION')
    with_cell = lesson.source(guess=lesson.CELLS["guess"] + "\n" + reason, guess_check=called)
    assert problems(lesson.write(tmp_path, with_cell), exercises) == []
    without = lesson.source(guess_check=called)
    found = problems(lesson.write(tmp_path, without), exercises)
    assert [problem.reason for problem in found] == ["the exercise 20-guess has no solution cell 20-reason"]
