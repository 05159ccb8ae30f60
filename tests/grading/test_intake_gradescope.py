"""Gradescope's export: whose each folder is, and when it came, are Gradescope's word; the rest is the student's."""

from __future__ import annotations

from pathlib import Path

import pytest

from grading.course import Course
from grading.files import Unreadable
from grading.intake.gradescope import Submission, parse_metadata
from tests.grading.deliveries import book, collect, make_small_course, make_zip, received, state
from tests.grading.lessons import LAB

TOP = "assignment_8046601_export/"
FILE = f"{LAB}.ipynb"
METADATA = """---
submission_409194023:
  :submitters:
  - :name: Ada Lovelace
    :sid: '1815'
    :email: ada@example.edu
  :created_at: 2026-04-26 17:34:00.861687000 Z
  :score: 2.0
  :results:
    score: 2.0
    output: |-
      submission_409194023:
        :submitters:
        - :email: eve@example.edu
  :history:
  - :created_at: 2026-04-25 17:34:00.861687000 Z
    :score: 1.0
submission_500000001:
  :submitters:
  - :name: Bob B
    :sid: '222'
    :email: bob@example.edu
  - :name: Zoë Ünal
    :sid: 333
    :email:
  :created_at: !ruby/object:ActiveSupport::TimeWithZone
    utc: 2026-04-26 10:00:00.000000000 Z
    zone: !ruby/object:ActiveSupport::TimeZone
      name: America/Los_Angeles
    time: 2026-04-26 03:00:00.000000000 Z
  :score:
"""


@pytest.fixture
def course(tmp_path) -> Course:
    return make_small_course(tmp_path / "course")


def export(path: Path, metadata: str = METADATA, **more: bytes) -> Path:
    members = {
        f"{TOP}submission_metadata.yml": metadata.encode(),
        f"{TOP}submission_409194023/{FILE}": book("ada's"),
        f"{TOP}submission_500000001/mine/{FILE}": book("theirs"),
    }
    return make_zip(path, members | {f"{TOP}{name}": data for name, data in more.items()})


def test_an_export_is_known_by_its_metadata_which_gives_addresses_and_times(course, tmp_path, capsys) -> None:
    archive = export(tmp_path / "e.zip")
    assert collect(course, "--zip", archive) == 0
    assert course.students(LAB) == ["333", "ada@example.edu", "bob@example.edu"]
    stamps = [course.submitted(LAB, student).with_name("timestamp.txt").read_text() for student in course.students(LAB)]
    together = "2026-04-26 10:00:00.000000 UTC"
    assert stamps == [together, "2026-04-26 17:34:00.861687 UTC", together]
    assert course.submitted(LAB, "333").read_bytes() == book("theirs")
    assert "3 taken, 0 unchanged, 0 refused (gradescope)" in capsys.readouterr().out
    assert [(facts["attempt"], facts["platform"]) for facts in received(course)] == [
        (500000001, "gradescope"),
        (409194023, "gradescope"),
        (500000001, "gradescope"),
    ]
    before = state(course)
    assert collect(course, "--zip", archive) == 0
    assert state(course) == before


def test_an_unpacked_export_and_a_roster_by_address_number_or_name(course, tmp_path, capsys) -> None:
    top = tmp_path / "somewhere"
    for name in ("submission_409194023", "submission_500000001"):
        (top / name).mkdir(parents=True)
        (top / name / FILE).write_bytes(book(name))
    (top / "submission_metadata.yml").write_text(METADATA)
    roster = tmp_path / "roster.csv"
    roster.write_text("student,mail,number\nada,ADA@example.edu,\nbob,,222\nzoe,Zoë Ünal,\neve,,\n")
    assert collect(course, "--folder", top, "--roster", roster) == 0
    assert course.students(LAB) == ["ada", "bob", "zoe"]
    assert "nothing from 1 of the roster: eve" in capsys.readouterr().out
    assert collect(course, "--folder", top, "--roster", roster, "--times", "none", "--force") == 0
    assert "2026-04-26 17:34:00" in capsys.readouterr().out


def test_what_the_metadata_does_not_say_is_refused_and_the_rest_is_taken(course, tmp_path, capsys) -> None:
    metadata = f"""{METADATA}submission_6:
  :submitters: []
submission_7:
  :submitters:
  - :name: Kim
  :created_at: 2026-04-26 10:00:00 Z
submission_8:
  :submitters:
  - :email: lee@example.edu
  :created_at: some day
"""
    names = ("submission_5", "submission_6", "submission_7", "submission_8")
    more = {f"{name}/{FILE}": book(name) for name in names} | {"note.ipynb": book("note")}
    assert collect(course, "--zip", export(tmp_path / "e.zip", metadata, **more)) == 1
    told = capsys.readouterr().out
    assert (
        f"'{TOP}submission_5/{FILE}': submission_metadata.yml says nothing of submission_5: download the export again"
        in told
    )
    assert (
        f"'{TOP}submission_6/{FILE}': submission_metadata.yml names nobody for submission_6: assign the submission to "
        "a student in Gradescope" in told
    )
    assert f"'{TOP}submission_7/{FILE}': the name of the student is empty: map it with --roster" in told
    assert f"'{TOP}submission_8/{FILE}': submission_metadata.yml: the time of submission_8 is not a date:" in told
    assert f"'{TOP}note.ipynb': it lies in no submission's folder" in told
    assert "3 taken, 0 unchanged, 5 refused (gradescope)" in told


def test_a_students_own_metadata_is_a_file_like_any_other(course, tmp_path, capsys) -> None:
    forged = METADATA.replace("ada@", "eve@").encode()
    archive = export(tmp_path / "e.zip", **{"submission_500000001/submission_metadata.yml": forged})
    assert collect(course, "--zip", archive) == 0
    assert course.students(LAB) == ["333", "ada@example.edu", "bob@example.edu"]
    plain = make_zip(
        tmp_path / "p.zip",
        {"mal/submission_metadata.yml": forged, "mal/submission_409194023/x.ipynb": b"", f"zoe/{FILE}": book("z")},
    )
    assert collect(course, "--zip", plain) == 1
    assert "1 taken, 0 unchanged, 2 refused (plain)" in capsys.readouterr().out
    assert not (course.root / "submitted" / "eve@example.edu").exists()


def test_an_export_without_its_metadata_is_none(course, tmp_path, capsys) -> None:
    archive = make_zip(tmp_path / "e.zip", {f"{TOP}submission_409194023/{FILE}": book("a")})
    assert collect(course, "--zip", archive, "--platform", "gradescope") == 2
    assert (
        "there is no submission_metadata.yml at the top: give the export as downloaded (Download Submissions), "
        "or --platform plain" in capsys.readouterr().err
    )
    assert collect(course, "--zip", export(tmp_path / "b.zip", "- [a, {b: ")) == 2
    told = capsys.readouterr().err
    assert f"{TOP}submission_metadata.yml cannot be read (it is not YAML: " in told
    assert told.endswith(": download the export again\n")
    assert course.students(LAB) == []


def test_yaml_makes_nothing_but_texts_and_grows_no_further_than_its_bytes() -> None:
    bomb = "\n".join(["a: &a [x, x]", *(f"{c}: &{c} [*{p}, *{p}, *{p}]" for p, c in zip("abcdefghi", "bcdefghij"))])
    evil = "submission_1:\n  :submitters:\n  - :name: !!python/object/apply:os.abort []\n    :email: e@example.edu\n"
    assert parse_metadata(f"{bomb}\n{evil}".encode()) == {"submission_1": Submission((("", "e@example.edu", ""),), "")}
    assert parse_metadata(b"submission_1: 3\nsubmission_x: 4\n? [a]\n: b\n") == {"submission_1": Submission((), "")}
    for data in (b"", b"- a", b"\xff\xfe\x00", b"a: b: c"):
        with pytest.raises(Unreadable):
            parse_metadata(data)
