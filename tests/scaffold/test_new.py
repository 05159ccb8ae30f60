"""`python -m grading new`: what it refuses, that it overwrites nothing, and that what it writes works as it stands."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grading.errors import UserError
from grading.scaffold.names import exercise_names, lab_names
from grading.scaffold.write import new_exercise, new_lab
from labkit import exercises

REPOSITORY = Path(__file__).resolve().parents[2]
NUMBERS = sorted({exercise_id[:2] for exercise_id in exercises.everything()})


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course with lab 20 alone: what a new lab is written into."""
    root = tmp_path / "course"
    for folder in ("labkit/exercises/lab20", "solutions"):
        (root / folder).mkdir(parents=True)
    shutil.copy(REPOSITORY / "labkit" / "labs.py", root / "labkit")
    (root / "labkit" / "exercises" / "lab20" / "__init__.py").write_text('"""Lab 20."""\n\nORDER = ("decode",)\n')
    (root / "solutions" / "20_small.py").write_text(
        '# %% [markdown]\n# ## The end\n\n# %%\nprogress("20", globals())\n'
    )
    return root


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name", ["my_lab", "7_lab", "21-my-lab", "21_My_lab", "21_", "21_my__lab", "021_lab", "../21_x"]
)
def test_what_is_no_name_of_a_lab_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="is no name for a lab: two digits and words in lower case, as in 21_my_lab"):
        lab_names(name)


@pytest.mark.parametrize("name", ["thing", "21_thing", "21-Thing", "21-", "21-a--b", "21-a/b"])
def test_what_is_no_name_of_an_exercise_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="is no name for an exercise: the lab's number and lower-case words"):
        exercise_names(name)


@pytest.mark.parametrize("name", ["21-lambda", "21-check", "21-torch"])
def test_an_exercise_is_not_called_like_what_its_notebook_uses(name: str) -> None:
    with pytest.raises(UserError, match="cannot be the name of a function there: choose another word"):
        exercise_names(name)


@pytest.mark.parametrize("name", ["20_another", "19_again", "00_start"])
def test_a_number_that_is_taken_is_refused_and_nothing_written(course: Path, name: str) -> None:
    before = files(course)
    with pytest.raises(UserError, match="has this number already: choose one that is free"):
        new_lab(course, lab_names(name), exercise_names(f"{name[:2]}-thing"))
    assert files(course) == before


def test_a_file_in_the_way_is_named_and_nothing_written(course: Path) -> None:
    mine = course / "tests" / "wrong" / "98-thing" / "forgets_to_square.py"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    before = files(course)
    with pytest.raises(
        UserError, match=r"forgets_to_square\.py is there already: choose another name, or move it away"
    ):
        new_lab(course, lab_names("98_my_lab"), exercise_names("98-thing"))
    assert files(course) == before


def test_an_exercise_of_no_lab_and_one_that_stands_are_refused(course: Path) -> None:
    with pytest.raises(UserError, match="there is no lab 21: begin it: python -m grading new 21_its_name"):
        new_exercise(course, exercise_names("21-thing"))
    with pytest.raises(UserError, match=r"20-decode is in labkit/exercises/lab20/__init__\.py already"):
        new_exercise(course, exercise_names("20-decode"))


def test_an_exercise_is_added_behind_the_others_of_any_lab(course: Path) -> None:
    new_exercise(course, exercise_names("20-my-thing"))
    assert 'ORDER = ("decode", "my-thing")' in files(course)["labkit/exercises/lab20/__init__.py"].decode()
    source = files(course)["solutions/20_small.py"].decode()
    assert source.index('check("20-my-thing", my_thing)') < source.index("# ## The end") < source.index("progress(")


@pytest.mark.parametrize("lab", NUMBERS)
def test_an_exercise_finds_its_place_in_every_lab_of_the_course(tmp_path: Path, lab: str) -> None:
    """Behind the others in the list, which is Python still, and before the heading of the closing section."""
    order = f"labkit/exercises/lab{lab}/__init__.py"
    (solution,) = (path.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.glob(f"solutions/{lab}_*.py"))
    for name in (order, solution):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    new_exercise(tmp_path, exercise_names(f"{lab}-my-thing"))
    (listed,) = (node.value for node in ast.parse((tmp_path / order).read_text()).body if isinstance(node, ast.Assign))
    slugs = [exercise_id.removeprefix(f"{lab}-") for exercise_id in exercises.of_lab(lab)]
    assert ast.literal_eval(listed) == (*slugs, "my-thing")
    source = (tmp_path / solution).read_text()
    section, check = source.index("\n# ## My thing"), source.index(f'check("{lab}-my-thing", my_thing)')
    assert source[check:].index("\n# ## ") < source[check:].index("guesses.score()")
    assert source[check:].index("\n# ## ") < source[check:].index(f'progress("{lab}"')
    assert "guesses.score()" not in source[:section]


@pytest.mark.full("classroom")
@pytest.mark.timeout(600)
def test_what_is_written_works_as_it_stands(tmp_path: Path) -> None:
    """In a copy of the course: two exercises, one added later; notebooks are fresh, answers judged as told."""
    root = tmp_path / "course"
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=REPOSITORY, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (REPOSITORY / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, root / name)
    environment = {**os.environ, "PYTHONPATH": str(root)}

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "solutions/21_my_lab.py" in run("grading", "new", "21_my_lab", "--exercise", "21-thing")
    run("grading", "new", "--exercise", "21-other-thing")
    run("grading", "build")
    run("grading", "build", "--check")
    run("ruff", "check", "labkit", "grading", "solutions")
    run("ruff", "format", "--check", "labkit", "grading", "solutions")
    said = run("pytest", "-q", "-p", "no:cacheprovider", "tests/exercises/test_answers.py", "-k", "21-")
    assert " passed" in said and "failed" not in said
    # What `make check` asks of every lab and page, without the answers of the others.
    lane = ("pytest", "-q", "-p", "no:cacheprovider", "--lane", "check")
    run(*lane, "tests/build", "tests/test_documents.py", "tests/test_features.py", "tests/test_predictions.py")
