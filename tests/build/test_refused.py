"""Bad source is refused: each kind with its file, its line and its reason."""

from dataclasses import replace

import pytest

from grading.build import BadSource, build, problems
from labkit.spec import Answer
from tests.build import lesson
from tests.build.lesson import DECODE, EXERCISES, check, declared, exercise, meta, solution, text

KNOWN = "is declared in labkit.exercises.lab07, which declares 07-decode, 07-guess"
GUESS = EXERCISES["07-guess"]


def function(body):
    """The solution cell of 07-decode with this body, four spaces in front of each line."""
    return solution("07-decode", "def decode(bits):\n" + "\n".join(f"    {line}" for line in body.split("\n")))


REGION = "### BEGIN SOLUTION\nreturn bits + 1\n### END SOLUTION"

# name: (changes to the lab, the line at fault: its text, or a number, the whole reason)
CASES = {
    "duplicate id": (
        {"figure": solution("07-decode", DECODE.replace("1024", "2048").replace("sign", "sgn"))},
        '"grade_id": "07-decode" (2)',
        'duplicate id "07-decode": line 31 has it too',
    ),
    "id without a lab": (
        {"setup": lesson.cell("x = 1", **meta("setup", locked=True))},
        '"setup"',
        'malformed id "setup": it must be NN-slug, as in 07-decode',
    ),
    "id with an underscore": (
        {"setup": lesson.cell("x = 1", **meta("07-set_up", locked=True))},
        "07-set_up",
        'malformed id "07-set_up": it must be NN-slug, as in 07-decode',
    ),
    "id that is too long": (
        {"setup": lesson.cell("x = 1", **meta("07-" + "x" * 62, locked=True))},
        "07-xxx",
        f'malformed id "07-{"x" * 62}": it must be NN-slug, as in 07-decode',
    ),
    "id of another lab": (
        {"setup": lesson.cell("x = 1", **meta("08-setup", locked=True))},
        "08-setup",
        'the id "08-setup" is not of this lab: it must begin with 07-',
    ),
    "id kept for numbered cells": (
        {"setup": lesson.cell("x = 1", **meta("07-c001", locked=True))},
        "07-c001",
        'the id "07-c001" is kept for cells that have none of their own',
    ),
    "metadata that is not JSON": (
        {"setup": '# %% nbgrader={"grade": false, "grade_id: 1}\nx = 1\n'},
        '"grade_id: 1',
        'metadata that cannot be read as key=JSON: nbgrader={"grade": false, "grade_id: 1}',
    ),
    "metadata that nbgrader refuses": (
        {"setup": '# %% nbgrader={"grade": false, "locked": true, "schema_version": 3}\nx = 1\n'},
        '"locked": true, "schema_version": 3}',
        "nbgrader refuses the metadata: 'solution' is a required property",
    ),
    "metadata of an old schema": (
        {"setup": lesson.cell("x = 1", **meta("07-setup", locked=True, schema_version=1))},
        "07-setup",
        "nbgrader refuses the metadata: Outdated schema version: 1 (expected 3)",
    ),
    "a text answer that carries no points": (
        {"open": lesson.cell("Why?", "markdown", **meta("07-why", solution=True))},
        "07-why",
        "nbgrader refuses the metadata: Markdown solution cell is not marked as a grade cell: Why?",
    ),
    "a task in a code cell": (
        {"task": lesson.cell("x = 1", **meta("07-draw", task=True, locked=True, points=1))},
        "07-draw",
        "nbgrader refuses the metadata: Task cells have to be markdown: x = 1",
    ),
    "check of an undeclared exercise": (
        {"end": check("07-other", 1, "other")},
        "07-other",
        f'no exercise "07-other" {KNOWN}',
    ),
    "check cell without -check": (
        {"end": lesson.cell("assert True", **meta("07-end", grade=True, locked=True, points=1))},
        "07-end",
        'the graded cell "07-end" must have the id of its exercise with -check behind it',
    ),
    "BEGIN without END": (
        {"guess": solution("07-guess", "### BEGIN SOLUTION\nguess = 2.0**-24")},
        "### BEGIN SOLUTION (2)",
        "BEGIN SOLUTION without END SOLUTION",
    ),
    "END without BEGIN": (
        {"guess": solution("07-guess", "### BEGIN SOLUTION\nguess = 2\n### END SOLUTION\n### END SOLUTION")},
        "### END SOLUTION (3)",
        "END SOLUTION without BEGIN SOLUTION",
    ),
    "nested markers": (
        {"guess": solution("07-guess", "### BEGIN SOLUTION\nguess = 2\n# BEGIN SOLUTION\n### END SOLUTION")},
        "# BEGIN SOLUTION (3)",
        "BEGIN SOLUTION inside another BEGIN SOLUTION",
    ),
    "marker in a plain cell": (
        {"figure": lesson.cell("a = 1\n### BEGIN SOLUTION\nprint(decode(1))\n### END SOLUTION")},
        "### BEGIN SOLUTION (2)",
        "a solution marker outside a solution cell (its metadata must say solution: true)",
    ),
    "marker in text": (
        {"end": text("### BEGIN SOLUTION\nsecret\n### END SOLUTION")},
        "# ### BEGIN SOLUTION (2)",
        "a solution marker outside a solution cell (its metadata must say solution: true)",
    ),
    "mark scheme in a plain cell": (
        {"end": text("### BEGIN MARK SCHEME\nOne point.\n### END MARK SCHEME")},
        "BEGIN MARK SCHEME (2)",
        "a mark scheme outside a task cell (its metadata must say task: true)",
    ),
    "hidden tests": (
        {
            "guess_check": check("07-guess", 0.5, "guess")
            + "### BEGIN HIDDEN TESTS\nassert guess\n### END HIDDEN TESTS\n"
        },
        "BEGIN HIDDEN",
        "hidden tests in a cell reach students through tracebacks; hidden cases belong to grading/hidden",
    ),
    "autotest": (
        {"figure": lesson.cell("### AUTOTEST decode(1)")},
        "AUTOTEST",
        "AUTOTEST is not supported: checks are declared exercises",
    ),
    "solution without markers": (
        {"guess": solution("07-guess", "guess = 2.0**-24")},
        '"grade_id": "07-guess"',
        "a solution cell without markers: put the solution between ### BEGIN SOLUTION and ### END SOLUTION",
    ),
    "nothing between the markers": (
        {"guess": solution("07-guess", "### BEGIN SOLUTION\n# here\n### END SOLUTION\nguess = 2.0**-24")},
        "### BEGIN SOLUTION (2)",
        "no code between the markers: a solution outside of them would be left in the student's cell",
    ),
    "unknown directive": (
        {"end": text("Read on.\n\n[[figure 3]]")},
        "[[figure 3]]",
        "unknown directive [[figure 3]]; the only one is [[exercise ID]]",
    ),
    "directive of an undeclared exercise": (
        {"end": text("[[exercise 07-other]]")},
        "07-other",
        f'[[exercise 07-other]]: no exercise "07-other" {KNOWN}',
    ),
    "directive among words": (
        {"end": text("As in [[exercise 07-decode]] above.")},
        "As in",
        "[[exercise ID]] must stand alone on its line",
    ),
    "directive twice": (
        {"end": text("Once more:\n\n[[exercise 07-decode]]")},
        "[[exercise 07-decode]] (2)",
        "[[exercise 07-decode]] stands here a second time",
    ),
    "no directive": (
        {"guess_text": text(lesson.HINTS)},
        '"grade_id": "07-guess-check"',
        "no line [[exercise 07-guess]] announces the exercise",
    ),
    "directive behind the check": (
        {"guess_text": None, "end": text(f"[[exercise 07-guess]]\n\n{lesson.HINTS}")},
        "[[exercise 07-guess]]",
        "[[exercise 07-guess]] comes after the exercise's check cell",
    ),
    "two hints": (
        {"guess_text": text("[[exercise 07-guess]]\n<details>a</details>\n<details>b</details>")},
        "[[exercise 07-guess]]",
        "2 folded hints (<details>) between [[exercise 07-guess]] and its check cell; "
        "three are wanted: a nudge, the idea, nearly the answer",
    ),
    "a hint that is not closed": (
        {"guess_text": text(f"[[exercise 07-guess]]\n{lesson.HINTS.removesuffix('</details>')}")},
        "[[exercise 07-guess]]",
        "3 <details> but 2 </details> among the hints of 07-guess",
    ),
    "no solution cell": (
        {"guess": None},
        '"grade_id": "07-guess-check"',
        "the exercise 07-guess has no solution cell 07-guess",
    ),
    "no check cell": (
        {"guess_check": None},
        '"grade_id": "07-guess"',
        "the exercise 07-guess has no check cell 07-guess-check",
    ),
    "no cell at all": (
        {"guess_text": None, "guess": None, "guess_check": None},
        1,
        "the declared exercise 07-guess has no cell here",
    ),
    "solution cell that carries the points": (
        {"guess": solution("07-guess", "### BEGIN SOLUTION\nguess = 2\n### END SOLUTION", grade=True, points=2)},
        '"grade_id": "07-guess"',
        "the cell 07-guess must be code with solution: true and grade: false (the points belong to the check cell)",
    ),
    "solution behind the check": (
        {"guess": None, "end": lesson.CELLS["guess"]},
        '"grade_id": "07-guess"',
        "the solution cell 07-guess comes after the check cell 07-guess-check",
    ),
    "points that disagree": (
        {"guess_check": check("07-guess", 2, "guess")},
        '"grade_id": "07-guess-check"',
        "07-guess-check is worth 2 here, but 0.5 in the declaration",
    ),
    "check cell not locked": (
        {"guess_check": check("07-guess", 0.5, "guess", locked=False)},
        '"grade_id": "07-guess-check"',
        "the check cell 07-guess-check is not locked",
    ),
    "check cell without check": (
        {
            "guess_check": lesson.cell(
                "assert guess == 1", **meta("07-guess-check", grade=True, locked=True, points=0.5)
            )
        },
        '"grade_id": "07-guess-check"',
        'the check cell must call check("07-guess", guess) once, as a statement of its own',
    ),
    "check of another id": (
        {"guess_check": check("07-guess", 0.5, "guess").replace('check("07-guess"', 'check("07-decode"')},
        'check("07-decode", guess)',
        'the check cell calls check("07-decode", guess), but the declaration wants check("07-guess", guess)',
    ),
    "check of another name": (
        {"guess_check": check("07-guess", 0.5, "decode")},
        'check("07-guess", decode)',
        'the check cell calls check("07-guess", decode), but the declaration wants check("07-guess", guess)',
    ),
    "check of too few": (
        {"guess_check": check("07-guess", 0.5)},
        'check("07-guess")',
        'the check cell calls check("07-guess"), but the declaration wants check("07-guess", guess)',
    ),
    "cell that does not parse": (
        {"figure": lesson.cell("a = 1\nprint(decode(1)")},
        "print(decode(1)",
        "does not parse: '(' was never closed",
    ),
    "stub that does not parse": (
        {"decode": function(REGION).replace("    ### BEGIN", "### BEGIN")},
        "### BEGIN SOLUTION",
        "the student's version of this cell does not parse: "
        "expected an indented block after function definition on line 1",
    ),
    "stub behind a return": (
        {"decode": function(f"if bits == bits:\n    return 0\nreturn 1\n{REGION}")},
        "### BEGIN SOLUTION",
        "the stub of decode would not raise NotImplementedError",
    ),
    "stub in one branch": (
        {"decode": function("if bits:\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\nreturn 0")},
        "### BEGIN SOLUTION",
        "the stub of decode would not raise NotImplementedError",
    ),
    "stub that is swallowed": (
        {
            "decode": function(
                "try:\n    ### BEGIN SOLUTION\n    return bits * 2\n    ### END SOLUTION\n"
                "except Exception:\n    return 0"
            )
        },
        "### BEGIN SOLUTION",
        "the stub of decode would not raise NotImplementedError",
    ),
    "value given away by a function": (
        {
            "guess": solution(
                "07-guess", "guess = 1\ndef help():\n    ### BEGIN SOLUTION\n    pass\n    ### END SOLUTION"
            )
        },
        "### BEGIN SOLUTION (2)",
        "the stub of the value guess would not raise when the cell runs",
    ),
    "answer of another name": (
        {"guess": solution("07-guess", "### BEGIN SOLUTION\nges = 1\n### END SOLUTION")},
        "### BEGIN SOLUTION (2)",
        "the answer guess is not defined in this cell",
    ),
    "solution repeated in a cell": (
        {"figure": lesson.cell("bits = 3\nsign = -1 if bits >> 15 else 1\nreturn_ = 2\nguess = 2.0**-24")},
        "guess = 2.0**-24",
        "a solution left in a student's cell: this repeats the solution of 07-guess",
    ),
    "solution left below its stub": (
        {"decode": solution("07-decode", DECODE + DECODE.split("SOLUTION\n")[1].split("    ###")[0])},
        "sign = -1 if (2)",
        "a solution left in a student's cell: this repeats the solution of 07-decode",
    ),
}


def place(body, where):
    """The line meant by a number, by "text", or by "text (n)" for the nth line that has it."""
    if isinstance(where, int):
        return where
    needle, _, nth = where.removesuffix(")").rpartition(" (")
    if needle and nth.isdigit():
        return lesson.line_of(body, needle, int(nth))
    return lesson.line_of(body, where)


@pytest.mark.parametrize("name", CASES)
def test_refused_with_file_line_and_reason(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    changes, where, reason = CASES[name]
    body = lesson.source(**changes)
    path = lesson.write(tmp_path / "solutions", body)
    found = list(map(str, problems(path, EXERCISES)))
    assert found == [f"solutions/07_small_lab.py:{place(body, where)}: {reason}"]
    with pytest.raises(BadSource):
        build(path, EXERCISES)


def test_the_sample_is_fine(tmp_path):
    assert problems(lesson.write(tmp_path, lesson.source()), EXERCISES) == []


def test_everything_is_reported_at_once_by_line(tmp_path):
    body = lesson.source(
        setup=lesson.cell("x = (", **meta("setup", locked=True)),
        decode=solution("07-decode", "def decode(bits):\n    return 1"),
        guess_check=check("07-guess", 1, "guess", locked=False),
        end=text("[[nothing]]"),
    )
    found = problems(lesson.write(tmp_path, body), EXERCISES)
    lines = [problem.line for problem in found]
    assert lines == sorted(lines)
    assert len(found) == 6
    with pytest.raises(BadSource) as caught:
        build(tmp_path / "07_small_lab.py", EXERCISES)
    assert caught.value.problems == found


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
            text(f"[[exercise 07-other]]\n{lesson.HINTS}"),
            solution("07-other", code),
            check("07-other", 2, *arguments),
        ]
    )
    found = problems(lesson.write(tmp_path, body), declared(exercise("other", *answers)))
    assert [problem.reason for problem in found] == ([reason] if reason else [])


def test_an_answer_in_another_cell(tmp_path):
    apart = replace(GUESS, answers=(*GUESS.answers, Answer("why", kind="value", cell="07-reason")))
    exercises = EXERCISES | {apart.id: apart}
    called = check("07-guess", 0.5, "guess", "why")
    reason = solution("07-reason", '### BEGIN SOLUTION\nwhy = "rounding"\n### END SOLUTION')
    with_cell = lesson.source(guess=lesson.CELLS["guess"] + "\n" + reason, guess_check=called)
    assert problems(lesson.write(tmp_path, with_cell), exercises) == []
    without = lesson.source(guess_check=called)
    found = problems(lesson.write(tmp_path, without), exercises)
    assert [problem.reason for problem in found] == ["the exercise 07-guess has no solution cell 07-reason"]


def test_magics_and_await_parse(tmp_path):
    body = lesson.source(figure=lesson.cell("%time decode(1)\n!ls\nawait decode(1)"))
    assert problems(lesson.write(tmp_path, body), EXERCISES) == []


def test_an_unknown_directive_is_refused_by_build_solution_too(tmp_path):
    from grading.build import build_solution

    path = lesson.write(tmp_path, lesson.source(end=text("[[exercise 07-other]]")))
    with pytest.raises(KeyError, match="07-other"):
        build_solution(path, EXERCISES)
