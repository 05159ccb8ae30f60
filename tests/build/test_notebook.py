"""What the solved and the student's notebook hold, and that they are the same bytes every time."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import nbformat
import pytest

from grading.build import CODE_STUB, TEXT_STUB, build, build_solution, problems, student_version
from grading.build.notebook import to_json
from labkit.spec import STUB_MESSAGE
from tests.build import lesson
from tests.build.lesson import EXERCISES


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return lesson.write(tmp_path_factory.mktemp("sources"), lesson.source())


@pytest.fixture(scope="module")
def built(path):
    return build(path, lesson.EXERCISES)


def by_id(notebook):
    return {cell.id: cell for cell in notebook.cells}


def test_ids_are_nbgraders_or_numbered(built):
    ids = [cell.id for cell in built.solution.cells]
    assert ids == [
        "20-c001",
        "20-setup",
        "20-c003",
        "20-decode",
        "20-decode-check",
        "20-c006",
        "20-c007",
        "20-guess",
        "20-guess-check",
        "20-why",
        "20-draw",
        "20-c012",
    ]
    assert [cell.id for cell in built.student.cells] == ids


def test_both_are_valid_notebooks_of_format_4_5(built):
    for notebook in (built.solution, built.student):
        nbformat.validate(notebook)
        assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
        assert notebook.metadata.kernelspec.name == "python3"
        assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_metadata_holds_nothing_of_the_source_format(built):
    keys = {key for cell in built.solution.cells for key in cell.metadata}
    assert keys == {"nbgrader", "tags"}
    assert by_id(built.solution)["20-c006"].metadata.tags == ["figure"]


def test_titles_and_extra_blank_lines_stay_in_the_source(tmp_path):
    body = '# %% Plot it tags=["figure"]\n\nx = 1\n\n\n\n\n# %% [markdown]\n"""\nText\n"""\n'
    notebook = build_solution(lesson.write(tmp_path, body), {})
    assert [(cell.source, dict(cell.metadata)) for cell in notebook.cells] == [
        ("x = 1", {"tags": ["figure"]}),
        ("Text", {}),
    ]


def test_the_solution_is_kept(built):
    assert by_id(built.solution)["20-decode"].source == lesson.DECODE.rstrip("\n")


def test_the_student_gets_stubs(built):
    cells = by_id(built.student)
    assert f'raise NotImplementedError("{STUB_MESSAGE}")' == CODE_STUB
    assert cells["20-decode"].source.endswith(f'"""The value of a bit pattern."""\n    {CODE_STUB}')
    assert cells["20-guess"].source == CODE_STUB
    assert cells["20-why"].source == f"Why is it so?\n\n{TEXT_STUB}"
    assert cells["20-draw"].source == "Draw it.\n"


def test_a_manual_answer_without_markers_is_cleared_whole(tmp_path):
    answer = lesson.cell("Because.", "markdown", **lesson.meta("20-why", grade=True, solution=True, points=2))
    built = build(lesson.write(tmp_path, lesson.source(open=answer)), lesson.EXERCISES)
    assert by_id(built.student)["20-why"].source == TEXT_STUB


def test_the_student_notebook_holds_no_solution(built):
    regions = [
        region.split("### END SOLUTION")[0]
        for cell in built.solution.cells
        for region in cell.source.split("### BEGIN SOLUTION")[1:]
    ]
    lines = [line.strip() for region in regions for line in region.split("\n") if len(line.strip()) > 12]
    assert len(lines) == 4
    released = to_json(built.student)
    for line in lines:
        assert line not in released
    assert "SOLUTION" not in released
    assert "One point for axes" not in released


def test_locks(built):
    cells = by_id(built.student)
    for name in ("20-decode-check", "20-setup", "20-draw"):
        assert cells[name].metadata.editable is False
        assert cells[name].metadata.deletable is False
    assert cells["20-decode"].metadata.deletable is False
    assert "editable" not in cells["20-decode"].metadata


def test_student_version_leaves_its_argument_alone(built):
    before = to_json(built.solution)
    student_version(built.solution)
    assert to_json(built.solution) == before


def test_directives_are_replaced_in_both(built):
    line = "**Exercise 20-decode** · 3 points · difficulty 2 of 3 · about 15 minutes"
    for notebook in (built.solution, built.student):
        assert line in notebook.cells[2].source.split("\n")
        assert "[[" not in to_json(notebook)


def test_numbers_are_counted(built):
    line = "**Exercise 20-guess** · 0.5 points · difficulty 1 of 3 · about 1 minute"
    assert line in built.student.cells[6].source


def test_an_optional_exercise_says_so_and_its_check_has_no_points_of_its_own(tmp_path):
    optional = EXERCISES | {"20-guess": replace(EXERCISES["20-guess"], optional=True)}
    path = lesson.write(tmp_path, lesson.source(guess_check=lesson.check("20-guess", 0, "guess")))
    line = "**Exercise 20-guess** · optional, 0.5 extra points · difficulty 1 of 3 · about 1 minute"
    assert line in build(path, optional).student.cells[6].source
    path = lesson.write(tmp_path, lesson.source())
    (refused,) = problems(path, optional)
    wanted = "20-guess-check is worth 0.5 here, but 0 in the declaration (it is optional: its points are extra credit)"
    assert refused.reason == wanted


def test_brackets_in_code_are_no_directive(tmp_path):
    body = lesson.text("See:\n\n```\n[[exercise 20-decode]]\n```\n\nand [[1, 2], [3, 4]].")
    notebook = build_solution(lesson.write(tmp_path, body), lesson.EXERCISES)
    assert "[[exercise 20-decode]]" in notebook.cells[0].source


def test_the_same_bytes_every_time(path, built):
    again = build(path, lesson.EXERCISES)
    assert to_json(again.solution) == to_json(built.solution)
    assert to_json(again.student) == to_json(built.student)


@pytest.mark.slow
def test_the_same_bytes_from_another_process(path, built):
    program = (
        "import sys, hashlib\n"
        "from pathlib import Path\n"
        "import labkit.labs\n"
        "from tests.build import lesson\n"
        "labkit.labs.LABS = lesson.WITHOUT_MINUTES\n"
        "from grading.build import build\n"
        "from grading.build.notebook import to_json\n"
        "built = build(Path(sys.argv[1]), lesson.EXERCISES)\n"
        "print(hashlib.sha256((to_json(built.solution) + to_json(built.student)).encode()).hexdigest())\n"
    )
    expected = hashlib.sha256((to_json(built.solution) + to_json(built.student)).encode()).hexdigest()
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [expected]


def test_the_file_is_as_nbformat_writes_it(built):
    text = to_json(built.student)
    assert text.startswith('{\n "cells": [\n')
    assert text.endswith("}\n")
    assert "·" in text
