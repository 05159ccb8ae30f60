"""Labs outside the repository: what is refused, and one taken from `new --root` to a student's points and archive."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from grading import own_labs
from grading.build.bundle import NAME
from grading.build.template_text import SENTENCES
from grading.course_file import read_course_file
from grading.errors import UserError
from grading.scaffold.names import exercise_names, lab_names
from grading.scaffold.write import new_exercise, new_lab
from labkit.labs import Lab, read_lab

REPOSITORY = Path(__file__).resolve().parents[2]
ANSWER = "def thing(x):\n    return (x * x).sum(-1)\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder with lab 91, as `new --root` writes it."""
    new_lab(tmp_path / "mine", lab_names("91_my_lab"), exercise_names("91-thing"))
    return tmp_path / "mine"


def test_a_lab_outside_says_itself_what_it_is(mine: Path) -> None:
    assert not (mine / "labkit" / "labs.py").exists()
    said = mine / "labkit" / "exercises" / "lab91" / "lab.toml"
    assert read_lab(said) == Lab("91", "My lab", "end", 30)
    said.write_text('title = "T"\nminutes = 5\nneeds = ["02"]\ninstead = {"02" = "`torch.finfo`"}\n')
    assert read_lab(said) == Lab("91", "T", "end", 5, needs=("02",), instead=(("02", "`torch.finfo`"),))


@pytest.mark.parametrize("text", ["", 'title = "T"', 'title = "T"\nminutes = 0', 'title = "T"\nminuets = 5', "title"])
def test_what_does_not_say_it_is_named(mine: Path, text: str) -> None:
    said = mine / "labkit" / "exercises" / "lab91" / "lab.toml"
    said.write_text(text)
    with pytest.raises(ValueError, match=r"lab91/lab\.toml does not say what the lab is: "):
        read_lab(said)


def test_a_folder_without_labs_and_a_number_that_is_taken_are_refused(mine: Path, monkeypatch) -> None:
    monkeypatch.delenv(own_labs.VARIABLE, raising=False)
    with pytest.raises(UserError, match=r"has no labs: begin one: python -m grading new 21_my_lab --root "):
        own_labs.use([mine.parent / "empty"])
    (mine / "solutions" / "91_my_lab.py").rename(mine / "solutions" / "02_mine.py")
    with pytest.raises(UserError, match=r"02_mine\.py has the number of .*02_float_formats\.py: rename one of them"):
        own_labs.use([mine])
    assert own_labs.folders() == ()


@pytest.mark.parametrize("path", ["my-labs", "../my-labs", ""])
def test_a_course_names_them_by_whole_paths(tmp_path: Path, path: str) -> None:
    file = tmp_path / "course.toml"
    file.write_text(f'own_labs = ["{path}"]')
    with pytest.raises(UserError, match=r'it takes whole paths of folders, as in \["/home/me/my-labs"\]'):
        read_course_file(file)
    file.write_text('own_labs = ["/srv/labs", "~/labs"]')
    assert read_course_file(file).own_labs == (Path("/srv/labs"), Path("~/labs"))


def test_an_exercise_is_added_outside_as_well(mine: Path) -> None:
    written = new_exercise(mine, exercise_names("91-other"))
    assert {path.relative_to(mine).parts[0] for path in written} == {"labkit", "solutions", "grading", "tests"}


@pytest.mark.full("classroom")
@pytest.mark.timeout(900)
def test_from_the_first_file_to_points_and_the_students_archive(tmp_path: Path) -> None:
    """Every command as a person types it; nothing of the repository changes."""
    mine, course = tmp_path / "mine", tmp_path / "course"

    def run(*words: str, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=REPOSITORY,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("grading", "new", "91_my_lab", "--exercise", "91-thing", "--root", str(mine))
    run("grading", "build", "--root", str(mine))
    run("grading", "build", "--root", str(mine), "--check")
    tests = ("pytest", "-q", "-p", "no:cacheprovider", "tests/exercises/test_answers.py", "-k", "91-")
    said = run(*tests, LABS_OWN=str(mine))
    assert " passed" in said and "failed" not in said

    file = tmp_path / "course.toml"
    file.write_text(f'labs = ["91"]\nown_labs = ["{mine}"]\n[points]\n"91-thing" = 3\n')
    source = mine / "solutions" / "91_my_lab.py"
    for sentence in SENTENCES:
        source.write_text(source.read_text().replace(sentence, "The author's own."))
    run("grading", "course", str(course), "--adapt", str(file))
    run("grading", "release", str(course))
    for student, answer in {"ada": ANSWER, "bob": "def thing(x):\n    return x.sum(-1)\n"}.items():
        hand_in(course, student, answer)
    run("grading", "grade", str(course), "91", "--workers", "1")
    run("grading", "feedback", str(course), "91")
    run("grading", "export", str(course), "--format", "nbgrader", "--out", str(tmp_path / "points.csv"))
    with (tmp_path / "points.csv").open(newline="") as rows:
        points = {row["student_id"]: float(row["score"]) for row in csv.DictReader(rows)}
    assert points == {"ada": 3.0, "bob": 0.0}
    page = (course / "feedback" / "bob" / "91_my_lab" / "91_my_lab.html").read_text()
    assert "square them first" in page
    run("grading", "explain", str(course), "91", "bob")

    run("grading", "bundle", "--own", str(mine), "--out", str(tmp_path / "labs.zip"))
    with zipfile.ZipFile(tmp_path / "labs.zip") as archive:
        archive.extractall(tmp_path)
    students = tmp_path / NAME
    assert (students / "notebooks" / "91_my_lab.ipynb").is_file()
    assert not list(students.rglob("*hidden*/lab91")) and "BEGIN SOLUTION" not in (
        (students / "notebooks" / "91_my_lab.ipynb").read_text()
    )
    check = f"from labkit import check\n{ANSWER}check('91-thing', thing)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(students)!r})\n{check}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "cases pass" in done.stdout, done.stdout + done.stderr
    rooms = ("labkit", "grading", "solutions", "notebooks", "tests")
    names = ("lab91", "91_my_lab.*", "91-thing")
    assert [path for room in rooms for name in names for path in (REPOSITORY / room).rglob(name)] == []


def hand_in(course: Path, student: str, answer: str) -> None:
    notebook = nbformat.read(course / "release" / "91_my_lab" / "91_my_lab.ipynb", 4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "91-thing":
            cell.source = answer
    path = course / "submitted" / student / "91_my_lab" / "91_my_lab.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
