"""Folders that strangers filled: trouble is refused with its reason, and the rest is taken."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from grading.errors import UserError
from grading.files import Unreadable
from grading.intake import folder as folder_module
from grading.intake.arrived import Arrivals, Refusal
from grading.intake.folder import read_folder
from grading.intake.timestamp import AS_IT_SHOULD_BE, parse_time


def fill(top: Path, *paths: str) -> Path:
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text("{}")
    return top


def reasons(arrivals: Arrivals) -> dict[str, str]:
    return {item.path: item.reason for item in arrivals.refused}


def names(arrivals: Arrivals) -> list[str]:
    return [entry.path for entry in arrivals.entries]


@pytest.fixture
def deep(tmp_path) -> Iterator[Path]:
    """A class's folder with folders 2,500 deep in it. Taken away here: Python's own way of doing so ends there too."""
    fill(tmp_path / "in", "ada/x.ipynb", "zoe/x.ipynb")
    try:
        folder = os.open(tmp_path / "in", os.O_RDONLY)
        for _ in range(2500):
            os.mkdir("m", dir_fd=folder)
            below = os.open("m", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        os.close(folder)
        yield tmp_path / "in"
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "in")], check=True)


def test_folders_deeper_than_any_stack_are_refused_and_the_rest_is_taken(deep) -> None:
    found = read_folder(deep)
    assert names(found) == ["ada/x.ipynb", "zoe/x.ipynb"]
    assert reasons(found) == {"/".join("m" * 17): "it cannot be read: it lies in more than 16 folders"}


def test_names_that_are_not_seen_are_refused(tmp_path) -> None:
    fill(tmp_path, "ada/x.ipynb", "a\u202eb/x.ipynb", "c\x9b2J/x.ipynb")
    os.makedirs(os.path.join(os.fsencode(tmp_path), b"\xff"))
    with open(os.path.join(os.fsencode(tmp_path), b"\xff", b"x.ipynb"), "wb"):
        pass
    found = read_folder(tmp_path)
    assert names(found) == ["ada/x.ipynb"]
    assert set(reasons(found).values()) == {"its name has invisible characters: rename it"}
    assert len(found.refused) == 3


def test_a_file_that_goes_away_meanwhile_is_refused_alone(tmp_path, monkeypatch) -> None:
    walk = folder_module._walk

    def racing(top, refused):
        for item in walk(top, refused):
            if item.name == "gone.ipynb":
                os.unlink(item.path)
            yield item

    monkeypatch.setattr(folder_module, "_walk", racing)
    found = read_folder(fill(tmp_path, "ada/x.ipynb", "bob/gone.ipynb"))
    assert names(found) == ["ada/x.ipynb"]
    assert reasons(found) == {"bob/gone.ipynb": "it cannot be read: No such file or directory"}


@pytest.mark.parametrize("link", ["mallory", "mallory/a", "mallory/a/b"])
def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(tmp_path, link) -> None:
    (tmp_path / "secret/a/b").mkdir(parents=True)
    (tmp_path / "secret/a/b/x.ipynb").write_text("a classmate's")
    entry, *_ = read_folder(fill(tmp_path / "in", "mallory/a/b/x.ipynb")).entries
    (tmp_path / "in" / link).rename(tmp_path / "away")
    (tmp_path / "in" / link).symlink_to(tmp_path / link.replace("mallory", "secret"))
    with pytest.raises(Refusal, match=r"x\.ipynb is a link or lies behind one: ask for the file itself"):
        entry.read()


@pytest.mark.parametrize("seconds", [2.0**63, -(2.0**63), 253_402_300_800.0, -62_135_596_801.0, float("inf")])
def test_a_time_that_no_calendar_has_is_none(seconds) -> None:
    """Some disks keep any; ext4 does not, so the disk is made up."""
    status = SimpleNamespace(st_mode=stat.S_IFREG | 0o600, st_size=2, st_mtime=seconds)
    found = Arrivals()
    item = SimpleNamespace(path="/x/ada_x.ipynb", stat=lambda follow_symlinks: status)
    folder_module._look(Path("/x"), item, "x", found)
    assert found.entries[0].when is None


def test_who_has_too_many_files_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(folder_module, "MAX_MEMBERS", 10)
    fill(tmp_path, "ada/x.ipynb", *(f"mallory/sub/{n}/x" for n in range(9)))
    with pytest.raises(UserError, match=r"has more than 10 files and folders: .*without what is in mallory/sub \("):
        read_folder(tmp_path)


BITS = "2026|-|01|T|12|:|00| |UTC|Z|+|99999999999|1e400|inf|nan|Feb|am|00000000000000|EST5EDT|,|.|W53|24:00|-14:00"


@seed(20261122)
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(BITS.split("|")), max_size=10).map("".join) | st.text(max_size=30))
def test_whatever_is_in_a_timestamp_it_is_a_time_that_comes_back_or_unreadable(text) -> None:
    try:
        when = parse_time(text.encode("utf-8", "replace"), "timestamp.txt")
    except Unreadable as error:
        assert AS_IT_SHOULD_BE in str(error)
    else:
        assert parse_time(f"{when:%Y-%m-%d %H:%M:%S.%f} UTC".encode(), "timestamp.txt") == when


@pytest.mark.parametrize("text", ["24:00202620262026202600000000000000", "\x1b[2J", "1e400"])
def test_what_only_looks_like_a_time_is_unreadable(text) -> None:
    with pytest.raises(Unreadable, match=r"timestamp\.txt is not a date"):
        parse_time(text.encode(), "timestamp.txt")
