"""Archives that strangers filled: trouble is refused with its reason, the rest is taken, nothing is written outside."""

from __future__ import annotations

import datetime
import os
import stat
import struct
import zipfile
import zoneinfo
from pathlib import Path

import pytest

from grading.errors import UserError
from grading.intake import archive as archive_module
from grading.intake.archive import MAX_MEMBERS, Allowance, open_archive
from grading.intake.arrived import Refusal
from tests.grading.odd_archives import GOOD, make_zip, with_method, with_mode

UTC = datetime.UTC


def reasons(path: Path, zone: datetime.tzinfo = UTC) -> dict[str, str]:
    """By path, why it is not taken, at the door or when it is read; "" for what can be read."""
    with open_archive(path, zone) as arrivals:
        found = {item.path: item.reason for item in arrivals.refused}
        for entry in arrivals.entries:
            try:
                entry.read()
                found[entry.path] = ""
            except Refusal as error:
                found[entry.path] = str(error)
    return found


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("../ada/x.ipynb", "its name leads out of the folder"),
        ("ada/../../x.ipynb", "its name leads out of the folder"),
        ("ada//x.ipynb", "its name leads out of the folder"),
        ("../", "its name leads out of the folder"),
        ("/etc/x.ipynb", "its name begins at the top of the disk"),
        ("C:/x.ipynb", "its name begins with a drive letter"),
        ("ada\\x.ipynb", "its name has a backslash, which on some systems leads out of the folder"),
        ("ada/x\n.ipynb", "its name has invisible characters: rename it"),
        ("ada/x\x9b2J.ipynb", "its name has invisible characters: rename it"),
        ("ada/x\u202egnp.ipynb", "its name has invisible characters: rename it"),
        ("a" * 1001, "its name has more than 1,000 characters"),
        (with_mode("ada/x.ipynb", stat.S_IFLNK | 0o777), "it is a link"),
        (with_mode("ada/x.ipynb", stat.S_IFBLK | 0o666), "it is a device or a pipe"),
        (with_mode("ada/x.ipynb", stat.S_IFIFO | 0o666), "it is a device or a pipe"),
        ("ada/x.zip", "it is an archive inside the archive, which is not opened: ask for the notebook itself"),
        (with_method("ada/x.ipynb", zipfile.ZIP_LZMA), "it is compressed by method 14, not stored or deflated"),
    ],
)
def test_a_member_that_cannot_be_trusted_is_refused_and_its_neighbour_is_not(tmp_path, member, reason) -> None:
    name = member if isinstance(member, str) else member.filename
    path = make_zip(tmp_path / "a.zip", [("bob/x.ipynb", GOOD), (member, b"/etc/passwd")])
    assert reasons(path) == {"bob/x.ipynb": "", name: reason}


def test_an_encrypted_member_is_refused(tmp_path) -> None:
    path = make_zip(tmp_path / "a.zip", [("ada/x.ipynb", GOOD), ("bob/x.ipynb", GOOD)])
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    assert reasons(path) == {"ada/x.ipynb": "it is encrypted", "bob/x.ipynb": ""}


def test_twins_are_refused_because_nobody_can_tell_which_is_meant(tmp_path) -> None:
    names = ["ada/x.ipynb", "ada/x.ipynb", "Bob/x.ipynb", "bob/x.ipynb", "zo\u00eb/x.ipynb", "zoe\u0308/x.ipynb", "c/x"]
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = make_zip(tmp_path / "a.zip", [(name, GOOD) for name in names])
    found = reasons(path)
    assert found.pop("ada/x.ipynb") == "it is there 2 times, and nobody can tell which one is meant"
    assert found.pop("c/x") == ""
    assert set(found) == set(names[2:6])
    assert set(found.values()) == {"another name differs from it only in case or in how its letters are encoded"}


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path) -> None:
    inner = make_zip(tmp_path / "inner.zip", [("0", bytes(10**6))]).read_bytes()
    path = make_zip(tmp_path / "a.zip", [("ada/x.ipynb", bytes(60 * 2**20)), ("bob/0.zip", inner), ("c/x", GOOD)])
    assert path.stat().st_size < 100_000
    with open_archive(path, UTC) as arrivals:
        bomb = next(entry for entry in arrivals.entries if entry.path == "ada/x.ipynb")
        with pytest.raises(Refusal, match="unpacks to more than 200 times its size, as a bomb does"):
            bomb.read()
    assert reasons(path)["bob/0.zip"].startswith("it is an archive inside the archive")
    assert reasons(path)["c/x"] == ""


def test_a_file_that_is_too_large_is_refused_also_when_it_is_not_compressed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(archive_module, "MAX_BYTES", 100_000)
    path = make_zip(tmp_path / "a.zip", [("ada/x.ipynb", os.urandom(100_001)), ("bob/x.ipynb", os.urandom(100_000))])
    assert reasons(path)["bob/x.ipynb"] == ""
    assert reasons(path)["ada/x.ipynb"].startswith("it has more than 100,000 bytes: ask the student to clear")


def test_all_members_together_may_not_give_more_than_the_allowance(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(archive_module, "Allowance", lambda: Allowance(3 * len(GOOD)))
    path = make_zip(tmp_path / "a.zip", [(f"{name}/x.ipynb", GOOD) for name in "abcd"])
    found = list(reasons(path).values())
    assert found[:3] == ["", "", ""] and found[3].startswith("the archive has already given")


@pytest.mark.parametrize("claimed", [10, 10**9])
def test_a_size_that_lies_is_found_by_reading(tmp_path, claimed) -> None:
    path = make_zip(tmp_path / "a.zip", [("ada/x.ipynb", GOOD), ("bob/x.ipynb", GOOD)])
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(signature) + offset, claimed)
    path.write_bytes(data)
    found = reasons(path)
    assert found["ada/x.ipynb"].startswith("it is damaged") and found["bob/x.ipynb"] == ""


def test_a_zip64_size_that_lies_is_found_by_reading(tmp_path) -> None:
    info = zipfile.ZipInfo("ada/x.ipynb")
    # Sizes beyond 32 bits stand in this field: here 2**60 bytes.
    info.extra = struct.pack("<HHQ", 1, 8, 2**60)
    path = make_zip(tmp_path / "a.zip", [(info, GOOD), ("bob/x.ipynb", GOOD)])
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, 0xFFFFFFFF)
    path.write_bytes(data)
    found = reasons(path)
    assert "it says 1,152,921,504,606,846,976 bytes" in found["ada/x.ipynb"] and found["bob/x.ipynb"] == ""


def test_a_damaged_member_is_refused_and_the_others_are_taken(tmp_path) -> None:
    path = make_zip(tmp_path / "a.zip", [("ada/x.ipynb", GOOD), ("bob/x.ipynb", GOOD)])
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)
    found = reasons(path)
    assert found["ada/x.ipynb"].startswith("it is damaged (") and found["bob/x.ipynb"] == ""


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06", b"%PDF-1.4", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_archive_is_said(tmp_path, data) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(UserError, match=r"a\.zip is not a complete zip archive .*: download it again"):
        reasons(tmp_path / "a.zip")


def test_a_directory_that_claims_gigabytes_is_not_read(tmp_path) -> None:
    path = make_zip(tmp_path / "a.zip", [("ada/x.ipynb", GOOD)])
    data = bytearray(path.read_bytes())
    end = data.index(b"PK\x05\x06")
    # A sparse file as large as it claims, so that nothing but the cap can refuse it.
    with (tmp_path / "b.zip").open("wb") as file:
        file.truncate(2**31)
        file.seek(0, os.SEEK_END)
        struct.pack_into("<II", data, end + 12, 2**31, 0)
        file.write(data[end:])
    with pytest.raises(UserError, match=r"its directory claims 2,147,483,648 bytes"):
        reasons(tmp_path / "b.zip")


def test_too_many_members_are_refused(tmp_path) -> None:
    many = [(f"mallory/x/{n}", b"") for n in range(MAX_MEMBERS)]
    path = make_zip(tmp_path / "a.zip", [("ada/x.ipynb", GOOD), *many])
    said = r"has 20,001 members, more than 20,000: leave out what is in mallory/x \(20,000 of 20,001\)"
    with pytest.raises(UserError, match=said):
        reasons(path)


def test_names_of_macos_are_read_as_the_utf8_that_they_are(tmp_path) -> None:
    path = make_zip(tmp_path / "a.zip", [("zo\u00eb/x.ipynb", GOOD)])
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
        data[data.index(signature) + offset] &= ~0x08
    path.write_bytes(data)
    assert reasons(path) == {"zo\u00eb/x.ipynb": ""}


def test_clutter_of_operating_systems_is_nobodys(tmp_path) -> None:
    names = [
        "__MACOSX/ada/._x.ipynb",
        "ada/.ipynb_checkpoints/x-checkpoint.ipynb",
        "ada/.DS_Store",
        "ada/x.ipynb",
        "ada/",
    ]
    assert reasons(make_zip(tmp_path / "a.zip", [(name, GOOD) for name in names])) == {"ada/x.ipynb": ""}


def test_times_are_local_to_the_zone_that_is_told_unless_the_member_says_utc(tmp_path) -> None:
    local, universal, none = (zipfile.ZipInfo(f"{name}/x.ipynb", (2026, 7, 1, 12, 0, 0)) for name in "abc")
    universal.extra = struct.pack("<HHBi", 0x5455, 5, 1, 1_767_225_600)
    path = make_zip(tmp_path / "a.zip", [(local, GOOD), (universal, GOOD), (none, GOOD)])
    data = bytearray(path.read_bytes())
    struct.pack_into("<H", data, data.rindex(b"PK\x01\x02") + 14, 0)
    path.write_bytes(data)
    with open_archive(path, zoneinfo.ZoneInfo("Europe/Berlin")) as arrivals:
        times = {entry.path[0]: entry.when for entry in arrivals.entries}
    assert times == {
        "a": datetime.datetime(2026, 7, 1, 10, tzinfo=UTC),
        "b": datetime.datetime(2026, 1, 1, tzinfo=UTC),
        "c": None,
    }
