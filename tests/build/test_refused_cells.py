"""Bad cells are refused: ids, metadata and markers, each with its file, its line and its reason."""

import pytest

from tests.build import lesson
from tests.build.lesson import DECODE, check, meta, solution, text
from tests.build.refused import KNOWN, assert_refused

# name: what `assert_refused` is given
CASES = {
    "duplicate id": (
        {"figure": solution("20-decode", DECODE.replace("1024", "2048").replace("sign", "sgn"))},
        '"grade_id": "20-decode" (2)',
        'duplicate id "20-decode": line 31 has it too',
    ),
    "id without a lab": (
        {"setup": lesson.cell("x = 1", **meta("setup", locked=True))},
        '"setup"',
        'malformed id "setup": it must be NN-slug, as in 20-decode',
    ),
    "id with an underscore": (
        {"setup": lesson.cell("x = 1", **meta("20-set_up", locked=True))},
        "20-set_up",
        'malformed id "20-set_up": it must be NN-slug, as in 20-decode',
    ),
    "id that is too long": (
        {"setup": lesson.cell("x = 1", **meta("20-" + "x" * 62, locked=True))},
        "20-xxx",
        f'malformed id "20-{"x" * 62}": it must be NN-slug, as in 20-decode',
    ),
    "id of another lab": (
        {"setup": lesson.cell("x = 1", **meta("08-setup", locked=True))},
        "08-setup",
        'the id "08-setup" is not of this lab: it must begin with 20-',
    ),
    "id kept for numbered cells": (
        {"setup": lesson.cell("x = 1", **meta("20-c001", locked=True))},
        "20-c001",
        'the id "20-c001" is kept for cells that have none of their own',
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
        {"setup": lesson.cell("x = 1", **meta("20-setup", locked=True, schema_version=1))},
        "20-setup",
        "nbgrader refuses the metadata: Outdated schema version: 1 (expected 3)",
    ),
    "a text answer that carries no points": (
        {"open": lesson.cell("Why?", "markdown", **meta("20-why", solution=True))},
        "20-why",
        "nbgrader refuses the metadata: Markdown solution cell is not marked as a grade cell: Why?",
    ),
    "a task in a code cell": (
        {"task": lesson.cell("x = 1", **meta("20-draw", task=True, locked=True, points=1))},
        "20-draw",
        "nbgrader refuses the metadata: Task cells have to be markdown: x = 1",
    ),
    "check of an undeclared exercise": (
        {"end": check("20-other", 1, "other")},
        "20-other",
        f'no exercise "20-other" {KNOWN}',
    ),
    "check cell without -check": (
        {"end": lesson.cell("assert True", **meta("20-end", grade=True, locked=True, points=1))},
        "20-end",
        'the graded cell "20-end" must have the id of its exercise with -check behind it',
    ),
    "BEGIN without END": (
        {"guess": solution("20-guess", "### BEGIN SOLUTION\nguess = 2.0**-24")},
        "### BEGIN SOLUTION (2)",
        "BEGIN SOLUTION without END SOLUTION",
    ),
    "END without BEGIN": (
        {"guess": solution("20-guess", "### BEGIN SOLUTION\nguess = 2\n### END SOLUTION\n### END SOLUTION")},
        "### END SOLUTION (3)",
        "END SOLUTION without BEGIN SOLUTION",
    ),
    "nested markers": (
        {"guess": solution("20-guess", "### BEGIN SOLUTION\nguess = 2\n# BEGIN SOLUTION\n### END SOLUTION")},
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
            "guess_check": check("20-guess", 0.5, "guess")
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
        {"guess": solution("20-guess", "guess = 2.0**-24")},
        '"grade_id": "20-guess"',
        "a solution cell without markers: put the solution between ### BEGIN SOLUTION and ### END SOLUTION",
    ),
    "nothing between the markers": (
        {"guess": solution("20-guess", "### BEGIN SOLUTION\n# here\n### END SOLUTION\nguess = 2.0**-24")},
        "### BEGIN SOLUTION (2)",
        "no code between the markers: a solution outside of them would be left in the student's cell",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_with_file_line_and_reason(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert_refused(tmp_path, *CASES[name])
