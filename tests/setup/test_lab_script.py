"""`make lab`: what is missing is copied, and what a student has is never touched."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".make" / "lab.py"
spec = importlib.util.spec_from_file_location("labs_lab_script", SCRIPT)
lab = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lab)


@pytest.fixture
def folders(tmp_path):
    source, work = tmp_path / "notebooks", tmp_path / "work"
    source.mkdir()
    (source / "00_start_here.ipynb").write_text("lab 0")
    (source / "02_bits.ipynb").write_text("lab 2")
    return source, work


def test_the_first_run_copies_everything(folders):
    source, work = folders
    (source / "data").mkdir()
    (source / "data" / "table.csv").write_text("1,2")
    (source / ".ipynb_checkpoints").mkdir()
    (source / ".ipynb_checkpoints" / "x.ipynb").write_text("")
    assert lab.sync(source, work) == ["new in work/: 00_start_here.ipynb, 02_bits.ipynb, data/table.csv"]
    assert (work / "02_bits.ipynb").read_text() == "lab 2"
    assert (work / "data" / "table.csv").read_text() == "1,2"
    assert sorted(os.listdir(work)) == [".origin.json", "00_start_here.ipynb", "02_bits.ipynb", "data"]


def test_answers_are_left_and_new_labs_added(folders):
    source, work = folders
    lab.sync(source, work)
    (work / "02_bits.ipynb").write_text("my answers")
    (source / "05_remat.ipynb").write_text("lab 5")
    assert lab.sync(source, work) == [
        "new in work/: 05_remat.ipynb",
        "already in work/, left as you have them: 00_start_here.ipynb, 02_bits.ipynb",
    ]
    assert (work / "02_bits.ipynb").read_text() == "my answers"


def test_a_newer_release_is_said_every_time_and_nothing_is_replaced(folders):
    source, work = folders
    lab.sync(source, work)
    (work / "02_bits.ipynb").write_text("my answers")
    (source / "02_bits.ipynb").write_text("lab 2, second edition")
    for _ in range(2):
        lines = lab.sync(source, work)
        assert lines == [
            "already in work/, left as you have them: 00_start_here.ipynb",
            "02_bits.ipynb was released anew; yours is left as it is. To start on the new one, rename "
            "work/02_bits.ipynb and run make lab again.",
        ]
    assert (work / "02_bits.ipynb").read_text() == "my answers"
    (work / "02_bits.ipynb").rename(work / "02_bits_mine.ipynb")
    lab.sync(source, work)
    assert (work / "02_bits.ipynb").read_text() == "lab 2, second edition"
    assert (work / "02_bits_mine.ipynb").read_text() == "my answers"


def test_a_file_of_unknown_origin_is_left(folders):
    source, work = folders
    work.mkdir()
    (work / "02_bits.ipynb").write_text("brought from elsewhere")
    lab.sync(source, work)
    assert (work / "02_bits.ipynb").read_text() == "brought from elsewhere"


@pytest.mark.parametrize("record", ["", "{", "[1]", "\x00"])
def test_a_spoiled_record_costs_nothing(folders, record):
    source, work = folders
    lab.sync(source, work)
    (work / "02_bits.ipynb").write_text("my answers")
    (work / ".origin.json").write_text(record)
    lab.sync(source, work)
    assert (work / "02_bits.ipynb").read_text() == "my answers"
    json.loads((work / ".origin.json").read_text())


def test_links_and_folders_of_that_name_are_left(folders, tmp_path):
    source, work = folders
    work.mkdir()
    (work / "02_bits.ipynb").symlink_to(tmp_path / "nowhere")
    (work / "00_start_here.ipynb").mkdir()
    lab.sync(source, work)
    assert (work / "02_bits.ipynb").is_symlink() and not (tmp_path / "nowhere").exists()
    assert (work / "00_start_here.ipynb").is_dir()


def test_an_interrupted_copy_leaves_no_half_file(folders, monkeypatch):
    _, work = folders
    work.mkdir()

    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(lab.os, "link", stop)
    with pytest.raises(KeyboardInterrupt):
        lab.place(work / "02_bits.ipynb", b"lab 2")
    assert os.listdir(work) == []


def test_a_file_system_without_links_still_gets_the_file_but_overwrites_none(folders, monkeypatch):
    _, work = folders
    work.mkdir()

    def refuse(*args):
        raise OSError("links are not supported")

    monkeypatch.setattr(lab.os, "link", refuse)
    assert lab.place(work / "02_bits.ipynb", b"lab 2")
    assert not lab.place(work / "02_bits.ipynb", b"other")
    assert (work / "02_bits.ipynb").read_text() == "lab 2"
