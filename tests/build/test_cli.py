"""The commands: what they write, what they print, and their exit codes."""

import argparse
import os

import pytest

from grading.build.cli import add_build_arguments, add_table_arguments, run_build, run_table
from grading.build.table import PLACE, markers
from tests.build import lesson
from tests.build.lesson import EXERCISES

NOTEBOOK = "notebooks/20_small_lab.ipynb"
REFRESH = "to make it: python -m grading build"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with one lab, nothing built, and the current folder in it."""
    monkeypatch.chdir(tmp_path)
    lesson.write(tmp_path / "solutions", lesson.source())
    (tmp_path / "README.md").write_text("\n".join(["# Labs", *markers(PLACE), ""]), encoding="utf-8")
    return tmp_path


@pytest.fixture
def command(course, capsys):
    """Runs a command on the course; answers (exit code, what it printed, line by line)."""

    def run(*words):
        parser = argparse.ArgumentParser()
        commands = parser.add_subparsers(required=True)
        add_build_arguments(commands.add_parser("build"))
        add_table_arguments(commands.add_parser("table"))
        args = parser.parse_args([*words, "--root", str(course)])
        assert args.run in (run_build, run_table)
        code = args.run(args, EXERCISES)
        printed = capsys.readouterr()
        return code, (printed.out + printed.err).splitlines()

    return run


def test_build_writes_notebooks_and_the_table_once(course, command):
    assert command("build") == (0, [f"wrote {NOTEBOOK}", "wrote README.md"])
    assert "| 20-decode | The decode | 3 |" in (course / "README.md").read_text(encoding="utf-8")
    written = os.stat(course / NOTEBOOK).st_mtime_ns
    assert command("build") == (0, ["nothing changed (1 notebook up to date)"])
    assert os.stat(course / NOTEBOOK).st_mtime_ns == written
    assert command("build", "--check") == (0, [])
    assert [path.name for path in (course / "notebooks").iterdir()] == ["20_small_lab.ipynb"]


def test_check_names_missing_stale_and_extra_and_writes_nothing(course, command):
    stale_table = "README.md: the exercise table is stale; to make it: python -m grading table --write"
    assert command("build", "--check") == (1, [stale_table, f"{NOTEBOOK}: missing; {REFRESH}"])
    assert not (course / "notebooks").exists()

    command("build")
    (course / NOTEBOOK).write_text("{}")
    (course / "notebooks" / "99_old.ipynb").write_text("{}")
    code, lines = command("build", "--check")
    assert code == 1
    assert lines == [
        f"{NOTEBOOK}: stale; {REFRESH}",
        "notebooks/99_old.ipynb: extra; no source makes it: git rm notebooks/99_old.ipynb",
    ]
    assert (course / NOTEBOOK).read_text() == "{}"


def test_build_leaves_an_extra_notebook_alone_but_says_so(course, command):
    (course / "notebooks").mkdir()
    (course / "notebooks" / "99_old.ipynb").write_text("mine")
    code, lines = command("build")
    assert code == 0
    assert lines[-1] == "notebooks/99_old.ipynb: extra; no source makes it: git rm notebooks/99_old.ipynb"
    assert (course / "notebooks" / "99_old.ipynb").read_text() == "mine"


def test_given_paths_are_all_that_is_looked_at(course, command):
    (course / "notebooks").mkdir()
    (course / "notebooks" / "99_old.ipynb").write_text("mine")
    lesson.write(course / "solutions", "# %%\nbroken(\n", "98_broken.py")
    assert command("build", "solutions/20_small_lab.py") == (0, [f"wrote {NOTEBOOK}"])
    assert command("build", "--check", "solutions/20_small_lab.py") == (0, [])


def test_solved_notebooks_go_where_they_are_asked_for(course, command):
    code, lines = command("build", "--solutions", "out/solved")
    assert code == 0
    assert "wrote out/solved/20_small_lab.ipynb" in lines
    assert "sign = -1 if bits" in (course / "out" / "solved" / "20_small_lab.ipynb").read_text(encoding="utf-8")
    assert "sign = -1 if bits" not in (course / NOTEBOOK).read_text(encoding="utf-8")


def test_bad_source_writes_nothing_and_says_everything(course, command):
    lesson.write(course / "solutions", "# %%\nbroken(\n", "98_broken.py")
    lesson.write(course / "solutions", "# %%\nx = 1\n", "9_name.py")
    code, lines = command("build")
    assert code == 2
    assert lines == [
        "solutions/98_broken.py:1: lab 98 is not declared, in labkit/labs.py or by a lab.toml",
        "solutions/98_broken.py:2: does not parse: '(' was never closed",
        "solutions/9_name.py:1: the file must be called NN_slug.py, as in 02_float_formats.py",
        "refused: 3 problems; nothing was written",
    ]
    assert not (course / "notebooks").exists()
    assert command("build", "--check")[0] == 2


def test_a_place_that_cannot_be_written_is_said_in_a_line(course, command):
    (course / "notebooks").write_text("a file where the folder should be")
    code, lines = command("build")
    assert code == 2
    assert lines == [f"{course / 'notebooks'}: File exists"]


def test_check_and_solutions_exclude_each_other(command):
    with pytest.raises(SystemExit):
        command("build", "--check", "--solutions", "out")


def test_table_prints_writes_and_checks(course, command):
    code, lines = command("table")
    assert code == 0
    assert lines[2].startswith("| [20](notebooks/20_small_lab.ipynb) ") and "| 2 | 3.5 |" in lines[2]
    assert command("table", "--check")[0] == 1
    assert command("table", "--write") == (0, ["wrote README.md"])
    assert command("table", "--write") == (0, ["nothing changed"])
    assert command("table", "--check") == (0, [])


def test_a_readme_without_a_place_for_the_table(course, command):
    (course / "README.md").write_text("# Labs\n")
    reason = (
        "README.md: no place for the exercise table: "
        "it needs the lines <!-- exercises:begin --> and <!-- exercises:end -->, once each and in this order"
    )
    assert command("table", "--write") == (2, [reason])
    assert command("table", "--check") == (1, [reason])
    assert command("build") == (0, [f"wrote {NOTEBOOK}"])
    assert command("build", "--check") == (1, [reason])
    assert (course / "README.md").read_text() == "# Labs\n"
