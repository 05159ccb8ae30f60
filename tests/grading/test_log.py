"""The log: nothing is lost or changed unseen, whatever is done to the file."""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grading.__main__ import main
from grading.course import CONFIG, Course
from grading.errors import UserError
from grading.log import Log


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return empty_course(tmp_path / "course")


def empty_course(root: Path) -> Course:
    root.mkdir()
    (root / CONFIG).write_text("c = get_config()\n")
    course = Course(root)
    course.make_key()
    return course


def filled(course: Course, n: int = 6) -> Log:
    log = Log(course)
    for index in range(n):
        log.append("noted", student=f"s{index}", points={"a": index / 2})
    return log


def lines(log: Log) -> list[bytes]:
    return log.path.read_bytes().splitlines(keepends=True)


def test_entries_come_back_as_they_were_written(course: Course) -> None:
    log = Log(course)
    assert log.verify() == [] and list(log.entries()) == []
    log.append("run began", workers=2, isolation="kernel")
    log.append("noted", student="Ñandú\udcff\n", points={"a": 0.1, "b": None}, notes=["two\nlines"])
    first, second = log.entries()
    assert (first.n, first.kind, first.facts) == (1, "run began", {"workers": 2, "isolation": "kernel"})
    assert second.facts == {"student": "Ñandú\udcff\n", "points": {"a": 0.1, "b": None}, "notes": ["two\nlines"]}
    assert second.previous == first.digest and first.time.endswith("+00:00")
    assert log.verify() == []


def test_only_the_owner_can_read_it(course: Course) -> None:
    log = filled(course)
    for path in (log.path, log.head_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_fact_cannot_pose_as_a_part_of_the_chain(course: Course) -> None:
    with pytest.raises(ValueError, match="previous"):
        Log(course).append("noted", previous="0" * 64)
    assert list(Log(course).entries()) == []


def _append_many(root: Path, name: str) -> None:
    for index in range(40):
        Log(Course(root)).append("noted", student=f"{name}{index}")


def test_several_processes_may_write_at_once(course: Course) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("fork")) as pool:
        for future in [pool.submit(_append_many, course.root, name) for name in "abc"]:
            future.result(60)
    log = Log(course)
    assert log.verify() == []
    found = [entry.facts["student"] for entry in log.entries()]
    assert sorted(found) == sorted(f"{name}{index}" for name in "abc" for index in range(40))


def _append_for_ever(root: Path, name: str) -> None:
    log = Log(Course(root))
    while True:
        log.append("noted", student=name, text="x" * 20_000)


@pytest.mark.full("kills")
def test_processes_killed_while_they_write_lose_no_entry(course: Course) -> None:
    log, context, rng = Log(course), get_context("fork"), random.Random(7)
    for round_ in range(12):
        writers = [context.Process(target=_append_for_ever, args=(course.root, f"{round_}{name}")) for name in "ab"]
        for writer in writers:
            writer.start()
        n_before = sum(1 for _ in log.lines())
        while sum(1 for _ in log.lines()) < n_before + 3:
            time.sleep(0.002)
        time.sleep(rng.random() / 50)
        for writer in writers:
            writer.kill()
        for writer in writers:
            writer.join(30)
        finished = [entry.digest for entry in log.entries()]
        log.append("noted", student="after")
        assert log.verify() == []
        assert [entry.digest for entry in log.entries()][: len(finished)] == finished


def test_only_the_tail_is_read_to_append(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(course)
    big = b"x" * (8 * 2**20)
    log.append("note", text=big.decode())
    log.append("note")
    read = []
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        data = pread(descriptor, size, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    log.append("note")
    assert sum(read) < 2**18
    monkeypatch.undo()
    assert log.verify() == []


@pytest.mark.parametrize("kept", [1, 60, -1])
def test_a_torn_line_is_put_aside_and_noted(course: Course, kept: int) -> None:
    log = filled(course)
    whole, last = lines(log)[:-1], lines(log)[-1]
    log.head_path.unlink()
    log.path.write_bytes(b"".join(whole) + last[:kept])
    size = len(last[:kept])
    assert log.verify()[0] == f"line 6 is not finished: the next run puts its {size} bytes aside"
    assert len(list(log.entries())) == 5
    log.append("noted", student="next")
    assert log.verify() == []
    *_, note, entry = log.entries()
    assert (note.kind, note.facts["size_bytes"], entry.facts["student"]) == ("recovered", size, "next")
    aside = log.path.with_name(note.facts["kept"])
    assert aside.read_bytes() == last[:kept] and stat.S_IMODE(aside.stat().st_mode) == 0o600


def test_the_zeros_of_a_power_cut_are_put_aside(course: Course) -> None:
    log = filled(course)
    with log.path.open("ab") as file:
        file.write(b"\0" * 100 + b'","digest":"00"}\n' + b"\0" * 50 + b"\n")
    log.append("noted", student="next")
    assert log.verify() == []
    assert [entry.kind for entry in log.entries()][-2:] == ["recovered", "noted"]


def test_a_full_disk_leaves_no_half_entry(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled(course)
    before = log.path.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: len(data) // 2]))
    with pytest.raises(OSError) as raised:
        log.append("noted", student="half")
    assert raised.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert log.path.read_bytes() == before
    log.append("noted", student="whole")
    assert log.verify() == []


def test_a_changed_entry_is_named(course: Course) -> None:
    log = filled(course)
    broken = lines(log)
    broken[2] = broken[2].replace(b'"a":1.0', b'"a":9.0')
    log.path.write_bytes(b"".join(broken))
    assert log.verify() == ["line 3: entry 3 was changed after it was written"]


def test_a_changed_last_entry_stays_as_evidence(course: Course) -> None:
    log = filled(course)
    broken = lines(log)
    broken[5] = broken[5].replace(b'"a":2.5', b'"a":9.0')
    log.path.write_bytes(b"".join(broken))
    log.append("noted", student="next")
    assert log.verify() == ["line 6: entry 6 was changed after it was written"]


def test_removed_entries_are_named(course: Course) -> None:
    log = filled(course)
    broken = lines(log)
    log.path.write_bytes(b"".join(broken[:1] + broken[3:]))
    assert log.verify() == ["line 2: entries 2 to 3 were removed"]


def test_reordered_entries_are_named(course: Course) -> None:
    log = filled(course)
    broken = lines(log)
    broken[1], broken[2] = broken[2], broken[1]
    log.path.write_bytes(b"".join(broken))
    first, *_ = log.verify()
    assert first == "line 2: entry 2 was removed"
    assert "line 3: entry 2 stands after entry 3: entries were reordered or repeated" in log.verify()


def test_a_repeated_entry_is_named(course: Course) -> None:
    log = filled(course)
    log.path.write_bytes(b"".join([*lines(log)[:3], *lines(log)[2:]]))
    assert log.verify()[0] == "line 4: entry 3 stands after entry 3: entries were reordered or repeated"


def test_a_cut_log_is_told_and_stays_told(course: Course) -> None:
    log = filled(course)
    log.path.write_bytes(b"".join(lines(log)[:4]))
    assert log.verify() == ["the log was cut: it ends with entry 4, and entry 6 had been written"]
    log.append("noted", student="next")
    assert log.verify() == ["line 5: before entry 5 was added, entries 5 to 6 had gone from the log"]
    log.path.unlink()
    assert log.verify() == ["the log was cut: it ends with entry 0, and entry 6 had been written"]
    log.append("noted", student="next")
    assert log.verify() == ["line 1: before entry 1 was added, entries 1 to 6 had gone from the log"]


def test_a_rewritten_log_does_not_fit_its_head(course: Course, tmp_path: Path) -> None:
    log = filled(course)
    other = filled(empty_course(tmp_path / "other"), 8)
    shutil.copy(other.path, log.path)
    assert log.verify() == ["entry 6 is not the one that log.head names: the log was rewritten from there or before"]
    shutil.copy(other.head_path, log.head_path)
    assert log.verify() == ["the file log.head is missing, or was not written with this course's key"]


def test_a_head_on_paper_finds_a_forger_who_has_the_key(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    log = filled(course)
    assert main(["audit", str(course.root), "--head"]) == 0
    paper = capsys.readouterr().out.strip()
    assert paper == log.head().short(course.key()) and len(paper) == 26
    log.append("noted", student="later")
    assert main(["audit", str(course.root), "--expect", paper.upper()]) == 0
    assert "every entry is there" in capsys.readouterr().out
    # Whoever has the key writes a log that is whole in itself.
    log.path.unlink()
    log.head_path.unlink()
    forged = filled(course, 3)
    assert forged.verify() == []
    said = forged.problems_since(paper)
    assert said == [f"the log has no entry 6, and it had one when the head {paper} was written down"]
    filled(course, 5)
    assert forged.verify() == []
    assert forged.problems_since(paper)[0].startswith(f"entry 6 is not the one that the head {paper} was taken from")
    assert main(["audit", str(course.root), "--expect", paper]) == 1


@pytest.mark.parametrize("text", ["", "6", "x-1", "6-0123", "6-" + "g" * 24])
def test_what_is_no_head_is_refused(course: Course, text: str) -> None:
    with pytest.raises(UserError, match="is not the head of a log"):
        Log(course).problems_since(text)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_single_change_to_the_bytes_goes_unseen(course: Course, data: st.DataObject) -> None:
    log = filled(course, 4) if not Log(course).path.exists() else Log(course)
    whole = log.path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    match data.draw(st.sampled_from(["replace", "remove", "insert"])):
        case "replace":
            broken[at] = (broken[at] + data.draw(st.integers(1, 255))) % 256
        case "remove":
            del broken[at : at + data.draw(st.integers(1, 400))]
        case "insert":
            broken[at:at] = data.draw(st.binary(min_size=1, max_size=40))
    try:
        log.path.write_bytes(bytes(broken))
        assert log.verify() != []
    finally:
        log.path.write_bytes(whole)
