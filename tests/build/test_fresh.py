"""What is generated is what its sources make: every student's notebook, the table in the README, the map of the labs.

As `python -m grading build --check` has it, lab by lab; tests/build/test_cli.py has the controls.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from grading.__main__ import main
from grading.build.cli import map_page
from grading.build.files import differences, extras

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "solutions").glob("*.py"))


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=pytest.mark.lab(path.name[:2])) for path in SOURCES]
)
def test_a_notebook_is_what_its_source_makes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["build", "--check", str(path)])
    assert code == 0, capsys.readouterr().err


def test_every_notebook_has_a_source() -> None:
    made = {ROOT / "notebooks" / f"{path.stem}.ipynb": "" for path in SOURCES}
    assert extras(ROOT / "notebooks", made) == [], "git rm them"


def test_the_table_and_the_map_are_what_the_declarations_make(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["table", "--check"])
    assert code == 0, capsys.readouterr().err
    assert differences(map_page(ROOT)) == [], "python -m grading build"
