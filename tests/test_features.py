"""The feature table: each lab's row is kept beside the others', whatever is blank, damaged or read-only.

That every row of a solved notebook is measured is seen where notebooks run.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
from pathlib import Path

import pytest

import labkit.features
from labkit import feature_row, feature_table
from labkit.features import FILE, Feature, FeatureTable, read_rows, table_path
from labkit.labs import LABS
from labkit.spec import STUB_MESSAGE


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


STANDING = [lab.id for lab in LABS if lab.stands]
SOLUTIONS = Path(__file__).resolve().parents[1] / "solutions"


def blank() -> str:
    raise NotImplementedError(STUB_MESSAGE)


def test_rows_of_labs_come_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feature_row("05", "checkpoint", speed=lambda: "1.33 x the FLOPs", memory=lambda: f"{17 / 100:.0%} of the peak")
    feature_row("02", "stochastic rounding", memory=lambda: "2 bytes per weight")
    capsys.readouterr()
    feature_table()
    assert capsys.readouterr().out.splitlines()[:-1] == [
        "lab  technique            speed             memory",
        "02   stochastic rounding  –                 2 bytes per weight",
        "05   checkpoint           1.33 x the FLOPs  17% of the peak",
    ]
    feature_row("05", "checkpoint, 4 segments", speed=lambda: "1.3 x")
    assert {lab: row.technique for lab, row in read_rows(folder / FILE).items()} == {
        "02": "stochastic rounding",
        "05": "checkpoint, 4 segments",
    }
    assert [path.name for path in folder.iterdir()] == [FILE], "and nothing half written is left"


def test_the_labs_without_a_row_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    feature_table()
    missing = f"No row yet from lab {', '.join(STANDING)}: the last cell of each lab adds it."
    assert capsys.readouterr().out.splitlines()[1:] == [missing]
    rows = {lab: Feature("x", "1", "2") for lab in STANDING[1:]}
    assert f"No row yet from lab {STANDING[0]}:" in FeatureTable(rows)._repr_html_()
    assert "No row yet" not in repr(FeatureTable(rows | {STANDING[0]: Feature("x", "1", "2")}))


def test_a_blank_answer_makes_no_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feature_row("05", "checkpoint", speed=blank, memory=lambda: "50%")
    assert not (folder / FILE).exists()
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "Lab 05 has no new row: blank is still blank. Run the cells above, then this one."


def test_an_earlier_row_stays_where_the_cells_above_have_not_run(folder: Path, capsys) -> None:
    feature_row("05", "checkpoint", memory=lambda: "50%")
    kept = read_rows(folder / FILE)
    feature_row("05", "checkpoint", memory=lambda: f"{measured_in_a_cell_above:.0%}")
    assert read_rows(folder / FILE) == kept
    said = capsys.readouterr().out
    assert "Lab 05 has no new row: NameError: name 'measured_in_a_cell_above' is not defined. Run the cells" in said
    assert said.count("50%") == 2, "and the table is shown all the same"


@pytest.mark.parametrize("lab", [lab for lab in STANDING if lab <= "20"])
def test_each_lab_adds_one_row_after_all_its_exercises(lab: str) -> None:
    (path,) = SOLUTIONS.glob(f"{lab}_*.py")
    text = path.read_text(encoding="utf-8")
    *before, cell = text.split("labkit.feature_row(")
    assert len(before) == 1 and before[0].rindex("-check") < before[0].rindex(f'progress("{lab}"')
    assert '"figure"' in before[0][before[0].rindex("\n# %%") :].splitlines()[1], "it is not run when a grade is made"
    call = ast.parse("f(" + cell.split("\n# %%")[0]).body[0].value
    number, technique = (argument.value for argument in call.args)
    assert number == lab and technique
    assert call.keywords and all(isinstance(part.value, ast.Lambda) for part in call.keywords)
    numbers = [one for part in call.keywords for one in ast.walk(part.value) if isinstance(one, ast.FormattedValue)]
    assert len(numbers) >= len(call.keywords), "what it says is made from measurements"
    whole = list(ast.walk(ast.parse(text)))
    made = {one.id for one in whole if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    made |= {one.name for one in whole if isinstance(one, ast.FunctionDef)} | {*dir(builtins)}
    assert {one.id for one in ast.walk(call) if isinstance(one, ast.Name)} - {"f"} <= made, "it asks for what is there"


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "3", '{"02": 3, "05": {"technique": 1}, "77": {}}', "\x00", "[" * 9999]
)
def test_a_damaged_file_is_begun_anew(folder: Path, text: str) -> None:
    (folder / FILE).write_text(text)
    assert read_rows(folder / FILE) == {}
    feature_row("05", "Checkpoint")
    assert list(read_rows(folder / FILE)) == ["05"]


def test_whole_rows_are_kept_where_another_one_is_damaged(folder: Path) -> None:
    feature_row("02", "Rounding")
    found = json.loads((folder / FILE).read_text()) | {"03": {"technique": "AMP", "speed": 3}}
    (folder / FILE).write_text(json.dumps(found))
    feature_row("05", "Checkpoint")
    assert list(read_rows(folder / FILE)) == ["02", "05"]


def test_a_read_only_folder_is_told_and_stops_nothing(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refused)
    feature_row("05", "Checkpoint", memory=lambda: "50 %")
    assert capsys.readouterr().out.splitlines()[:-1] == [
        "(This row could not be kept: Read-only file system.)",
        "lab  technique   speed  memory",
        "05   Checkpoint  –      50 %",
    ]


def test_an_interrupted_write_leaves_the_old_rows(folder: Path, monkeypatch) -> None:
    feature_row("02", "Rounding")

    def interrupted(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", interrupted)
    feature_row("05", "Checkpoint")
    assert list(read_rows(folder / FILE)) == ["02"] and os.listdir(folder) == [FILE]


def test_the_file_lies_in_work_for_notebooks_of_the_course(folder: Path, monkeypatch) -> None:
    assert table_path() == folder / FILE
    monkeypatch.setattr(labkit.features, "__file__", str(folder / "labkit" / "features.py"))
    (folder / "notebooks").mkdir()
    monkeypatch.chdir(folder / "notebooks")
    assert table_path() == folder / "work" / FILE
    feature_row("05", "Checkpoint")
    assert list(read_rows(folder / "work" / FILE)) == ["05"]


def test_a_page_shows_text_and_no_tags() -> None:
    html = FeatureTable({"05": Feature("<b>bold</b>", "1", "2")})._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html and "#" not in html, "and it takes the page's own colours"
