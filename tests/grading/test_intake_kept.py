"""What was handed in is kept: before it is replaced, and when a run fails or is killed. No link is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grading.course import Course
from grading.files import Unreadable
from grading.intake import accept as accept_module
from grading.intake import swap as swap_module
from grading.intake.store import archive_bytes, archive_submission, archived_path
from grading.rebuild.submission import MAX_BYTES
from tests.grading.deliveries import book, collect, make_small_course, make_zip, received, state
from tests.grading.lessons import LAB


@pytest.fixture
def course(tmp_path) -> Course:
    return make_small_course(tmp_path / "course")


def test_what_a_killed_run_left_is_noted_at_the_time_that_it_left(course, tmp_path) -> None:
    archive = make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")})
    collect(course, "--zip", archive)
    (course.root / ".grading" / "log.jsonl").unlink()
    assert collect(course, "--zip", archive, "--timezone", "Europe/Berlin") == 0
    assert [facts["when"] for facts in received(course)] == ["2026-01-31T12:00:00+00:00"]


def test_nothing_is_written_through_a_link_in_the_course(course, tmp_path, capsys) -> None:
    (tmp_path / "elsewhere").mkdir()
    (course.root / "submitted").mkdir()
    (course.root / "submitted" / "ada").symlink_to(tmp_path / "elsewhere")
    assert collect(course, "--zip", make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")})) == 1
    assert "submitted/ada is a link or no folder: look at it and remove it" in capsys.readouterr().out
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_submission_put_there_by_hand_is_kept_before_it_is_replaced(course, tmp_path) -> None:
    path = course.submitted(LAB, "ada")
    path.parent.mkdir(parents=True)
    path.write_bytes(book("by hand"))
    (path.parent / "timestamp.txt").write_text("2026-02-01 00:00:00 UTC")
    assert collect(course, "--zip", make_zip(tmp_path / "1.zip", {f"ada/{LAB}.ipynb": book("older")})) == 1
    newer = make_zip(tmp_path / "2.zip", {f"ada/{LAB}.ipynb": book("newer")}, (2026, 2, 2, 0, 0, 0))
    assert collect(course, "--zip", newer) == 0
    contents = [file.read_bytes() for file in (course.root / ".grading" / "submissions" / LAB).iterdir()]
    assert sorted(contents) == sorted([book("by hand"), book("newer")])


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_failure_on_the_way_leaves_the_earlier_submission_whole(course, tmp_path, monkeypatch, exchanges) -> None:
    """With and without a system that exchanges two names in one step."""
    if not exchanges:
        monkeypatch.setattr(swap_module, "_exchange", lambda one, other: False)
    archives = [
        make_zip(tmp_path / f"{n}.zip", {f"ada/{LAB}.ipynb": book(f"{n}")}, (2026, 1, n, 0, 0, 0)) for n in (1, 2, 3)
    ]
    assert [collect(course, "--zip", path) for path in archives[:2]] == [0, 0]
    before = state(course)

    def fail(draft: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(accept_module, "swap_folder", fail)
        assert collect(course, "--zip", archives[2]) == 2
    after = state(course)
    assert {name: after[name] for name in before} == before
    assert collect(course, "--zip", archives[2]) == 0
    assert course.submitted(LAB, "ada").read_bytes() == book("3")
    assert sorted(os.listdir(course.root / "submitted" / "ada")) == [LAB]


def test_what_a_killed_run_put_there_without_a_word_is_noted_by_the_next(course, tmp_path) -> None:
    archive = make_zip(tmp_path / "a.zip", {f"ada/{LAB}.ipynb": book("a")})
    path = course.submitted(LAB, "ada")
    path.parent.mkdir(parents=True)
    path.write_bytes(book("a"))
    (path.parents[1] / f".incoming-{LAB}-0123").mkdir()
    assert collect(course, "--zip", archive) == 0
    assert [facts["student"] for facts in received(course)] == ["ada"]
    assert collect(course, "--zip", archive) == 0
    assert len(received(course)) == 1


def test_the_store_mends_a_file_that_was_cut_short(course) -> None:
    data = book("a")
    digest = archive_bytes(course, LAB, data)
    path = archived_path(course, LAB, digest)
    path.chmod(0o600)
    path.write_bytes(data[:10])
    assert archive_bytes(course, LAB, data) == digest
    assert path.read_bytes() == data and path.stat().st_mode & 0o777 == 0o400


def test_the_store_keeps_what_is_submitted_but_follows_no_link(course) -> None:
    path = course.submitted(LAB, "ada")
    path.parent.mkdir(parents=True)
    path.write_bytes(book("a"))
    assert archived_path(course, LAB, archive_submission(course, LAB, "ada")).read_bytes() == book("a")
    path.unlink()
    path.symlink_to(course.source(LAB))
    with pytest.raises(Unreadable, match="is a link or lies behind one: ask for the file itself"):
        archive_submission(course, LAB, "ada")
    path.unlink()
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(Unreadable, match="has more than 52,428,800 bytes: clear its outputs and resubmit"):
        archive_submission(course, LAB, "ada")
