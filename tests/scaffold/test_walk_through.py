"""The exercise of docs/authoring.md, written file by file as the page shows it: its answers are judged as told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grading.scaffold.names import exercise_names, lab_names
from grading.scaffold.write import new_lab

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "authoring.md"
SHOWN = re.compile(r"`(?P<path>[\w/-]+/half_mean\.py|tests/[\w/-]+\.py)`:\n\n```python\n(?P<text>.*?)```", re.DOTALL)
ANSWER = re.compile(r"The cell with your answer:\n\n```python\n(.*?)```", re.DOTALL)
DRAWS = 200


def as_written(root: Path) -> Path:
    """Lab 92 in a folder of its own, with what the page shows of lab 21: an author's clone may have a lab 21."""
    page = PAGE.read_text(encoding="utf-8").replace("21-half", "92-half").replace("lab21", "lab92")
    new_lab(root, lab_names("92_my_lab"), exercise_names("92-half-mean"))
    for path in [*root.glob("tests/*/92-half-mean/*.py")]:
        path.unlink()
    found = {match["path"]: match["text"] for match in SHOWN.finditer(page)}
    assert len(found) == 6, sorted(found)
    for path, text in found.items():
        (root / path).write_text(text, encoding="utf-8")
    source = root / "solutions" / "92_my_lab.py"
    before, function, after = source.read_text(encoding="utf-8").partition("def half_mean")
    cell = ANSWER.search(page)[1]
    source.write_text(before + cell + "\n\n" + after[after.index("# %%") :], encoding="utf-8")
    assert function
    return root


@pytest.mark.full("classroom")
@pytest.mark.timeout(600)
def test_the_files_of_the_page_make_an_exercise_that_refuses_no_right_answer(tmp_path: Path) -> None:
    root = as_written(tmp_path / "mine")

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=REPOSITORY,
            env={**os.environ, "LABS_OWN": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("grading", "build", "--root", str(root))
    said = run("pytest", "-q", "-p", "no:cacheprovider", "tests/exercises/test_answers.py", "-k", "92-half-mean")
    assert " passed" in said and "failed" not in said
    right = root / "tests" / "right" / "92-half-mean" / "divides_first.py"
    said = run("grading", "try", "92-half-mean", str(right), "--draws", str(DRAWS))
    assert f"{DRAWS} of {DRAWS} draws pass" in said
