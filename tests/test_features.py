"""The feature table: each lab's row is kept beside the others', whatever is blank, damaged or read-only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import labkit.features
from labkit import feature_row, feature_table
from labkit.features import FILE, Feature, FeatureTable, read_rows, table_path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blank() -> str:
    raise NotImplementedError("Write your answer here.")


def test_rows_of_labs_come_together(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feature_row("05", "Checkpoint, 8 segments", speed=lambda: "1.33 x the FLOPs", memory="17 % of the peak")
    feature_row("02", "Stochastic rounding", memory=lambda: "2 bytes a weight")
    capsys.readouterr()
    feature_table()
    assert capsys.readouterr().out.splitlines() == [
        "lab  technique               speed             memory",
        "02   Stochastic rounding     –                 2 bytes a weight",
        "05   Checkpoint, 8 segments  1.33 x the FLOPs  17 % of the peak",
    ]
    feature_row("05", "Checkpoint, 4 segments", speed="1.3 x")
    assert {lab: row.technique for lab, row in read_rows(folder / FILE).items()} == {
        "02": "Stochastic rounding",
        "05": "Checkpoint, 4 segments",
    }
    assert [path.name for path in folder.iterdir()] == [FILE], "and nothing half written is left"


def test_a_blank_exercise_costs_its_own_figure_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feature_row("05", "Checkpoint", speed=blank, memory=lambda: f"{0.5:.0%}")
    assert read_rows(folder / FILE)["05"] == Feature("Checkpoint", "not measured yet", "50%")
    assert "not measured yet" in capsys.readouterr().out


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
    feature_row("05", "Checkpoint", memory="50 %")
    assert capsys.readouterr().out.splitlines() == [
        "lab  technique   speed  memory",
        "05   Checkpoint  –      50 %",
        "(This row could not be kept: Read-only file system.)",
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
