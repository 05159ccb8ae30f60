"""Bad exercises are refused: directives, checks, stubs and solutions, each with its file, its line and its reason."""

import pytest

from grading.build import BadSource, build, problems
from tests.build import lesson
from tests.build.lesson import DECODE, EXERCISES, check, meta, solution, text
from tests.build.refused import KNOWN, REGION, assert_refused, function

# name: what `assert_refused` is given
CASES = {
    "unknown directive": (
        {"end": text("Read on.\n\n[[figure 3]]")},
        "[[figure 3]]",
        "unknown directive [[figure 3]]; known are [[exercise ID]], [[time]] and [[stop]]",
    ),
    "directive of an undeclared exercise": (
        {"end": text("[[exercise 20-other]]")},
        "20-other",
        f'[[exercise 20-other]]: no exercise "20-other" {KNOWN}',
    ),
    "directive among words": (
        {"end": text("As in [[exercise 20-decode]] above.")},
        "As in",
        "[[exercise ID]] must stand alone on its line",
    ),
    "directive twice": (
        {"end": text("Once more:\n\n[[exercise 20-decode]]")},
        "[[exercise 20-decode]] (2)",
        "[[exercise 20-decode]] stands here a second time",
    ),
    "no directive": (
        {"guess_text": text(lesson.HINTS)},
        '"grade_id": "20-guess-check"',
        "no line [[exercise 20-guess]] announces the exercise, in a text cell before this check, above its hints",
    ),
    "directive behind the check": (
        {"guess_text": None, "end": text(f"[[exercise 20-guess]]\n\n{lesson.HINTS}")},
        "[[exercise 20-guess]]",
        "[[exercise 20-guess]] comes after the exercise's check cell",
    ),
    "two hints": (
        {"guess_text": text("[[exercise 20-guess]]\n<details>a</details>\n<details>b</details>")},
        "[[exercise 20-guess]]",
        "2 folded hints (<details>) between [[exercise 20-guess]] and its check cell; "
        "three are wanted: a nudge, the idea, nearly the answer",
    ),
    "a hint that is not closed": (
        {"guess_text": text(f"[[exercise 20-guess]]\n{lesson.HINTS.removesuffix('</details>')}")},
        "[[exercise 20-guess]]",
        "3 <details> but 2 </details> among the hints of 20-guess",
    ),
    "no solution cell": (
        {"guess": None},
        '"grade_id": "20-guess-check"',
        "the exercise 20-guess has no solution cell 20-guess",
    ),
    "no check cell": (
        {"guess_check": None},
        '"grade_id": "20-guess"',
        "the exercise 20-guess has no check cell 20-guess-check",
    ),
    "no cell at all": (
        {"guess_text": None, "guess": None, "guess_check": None},
        1,
        "the declared exercise 20-guess has no cell here",
    ),
    "solution cell that carries the points": (
        {"guess": solution("20-guess", "### BEGIN SOLUTION\nguess = 2\n### END SOLUTION", grade=True, points=2)},
        '"grade_id": "20-guess"',
        "the cell 20-guess must be code with solution: true and grade: false (the points belong to the check cell)",
    ),
    "solution behind the check": (
        {"guess": None, "end": lesson.CELLS["guess"]},
        '"grade_id": "20-guess"',
        "the solution cell 20-guess comes after the check cell 20-guess-check",
    ),
    "points that disagree": (
        {"guess_check": check("20-guess", 2, "guess")},
        '"grade_id": "20-guess-check"',
        "20-guess-check is worth 2 here, but 0.5 in the declaration",
    ),
    "check cell not locked": (
        {"guess_check": check("20-guess", 0.5, "guess", locked=False)},
        '"grade_id": "20-guess-check"',
        "the check cell 20-guess-check is not locked",
    ),
    "check cell without check": (
        {
            "guess_check": lesson.cell(
                "assert guess == 1", **meta("20-guess-check", grade=True, locked=True, points=0.5)
            )
        },
        '"grade_id": "20-guess-check"',
        'the check cell must call check("20-guess", guess) once, as a statement of its own',
    ),
    "check of another id": (
        {"guess_check": check("20-guess", 0.5, "guess").replace('check("20-guess"', 'check("20-decode"')},
        'check("20-decode", guess)',
        'the check cell calls check("20-decode", guess), but the declaration wants check("20-guess", guess)',
    ),
    "check of another name": (
        {"guess_check": check("20-guess", 0.5, "decode")},
        'check("20-guess", decode)',
        'the check cell calls check("20-guess", decode), but the declaration wants check("20-guess", guess)',
    ),
    "check of too few": (
        {"guess_check": check("20-guess", 0.5)},
        'check("20-guess")',
        'the check cell calls check("20-guess"), but the declaration wants check("20-guess", guess)',
    ),
    "another order than declared": (
        {
            "setup": "\n".join(map(lesson.CELLS.get, ("setup", "guess-text", "guess", "guess-check"))),
            **dict.fromkeys(("guess_text", "guess", "guess_check")),
        },
        '"grade_id": "20-guess-check"',
        "20-guess stands before 20-decode here, and behind it in ORDER of labkit/exercises/lab20/__init__.py",
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
                "20-guess", "guess = 1\ndef help():\n    ### BEGIN SOLUTION\n    pass\n    ### END SOLUTION"
            )
        },
        "### BEGIN SOLUTION (2)",
        "the stub of the value guess would not raise when the cell runs",
    ),
    "answer of another name": (
        {"guess": solution("20-guess", "### BEGIN SOLUTION\nges = 1\n### END SOLUTION")},
        "### BEGIN SOLUTION (2)",
        "the answer guess is not defined in this cell",
    ),
    "solution repeated in a cell": (
        {"figure": lesson.cell("bits = 3\nsign = -1 if bits >> 15 else 1\nreturn_ = 2\nguess = 2.0**-24")},
        "guess = 2.0**-24",
        "a solution left in a student's cell: this repeats the solution of 20-guess",
    ),
    "solution left below its stub": (
        {"decode": solution("20-decode", DECODE + DECODE.split("SOLUTION\n")[1].split("    ###")[0])},
        "sign = -1 if (2)",
        "a solution left in a student's cell: this repeats the solution of 20-decode",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_with_file_line_and_reason(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert_refused(tmp_path, *CASES[name])


def test_the_sample_is_fine(tmp_path):
    assert problems(lesson.write(tmp_path, lesson.source()), EXERCISES) == []


def test_everything_is_reported_at_once_by_line(tmp_path):
    body = lesson.source(
        setup=lesson.cell("x = (", **meta("setup", locked=True)),
        decode=solution("20-decode", "def decode(bits):\n    return 1"),
        guess_check=check("20-guess", 1, "guess", locked=False),
        end=text("[[nothing]]"),
    )
    found = problems(lesson.write(tmp_path, body), EXERCISES)
    lines = [problem.line for problem in found]
    assert lines == sorted(lines)
    assert len(found) == 6
    with pytest.raises(BadSource) as caught:
        build(tmp_path / "20_small_lab.py", EXERCISES)
    assert caught.value.problems == found


def test_magics_and_await_parse(tmp_path):
    body = lesson.source(figure=lesson.cell("%time decode(1)\n!ls\nawait decode(1)"))
    assert problems(lesson.write(tmp_path, body), EXERCISES) == []


def test_an_unknown_directive_is_refused_by_build_solution_too(tmp_path):
    from grading.build import build_solution

    path = lesson.write(tmp_path, lesson.source(end=text("[[exercise 20-other]]")))
    with pytest.raises(KeyError, match="20-other"):
        build_solution(path, EXERCISES)
