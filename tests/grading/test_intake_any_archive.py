"""Archives put together at random: nothing is written outside of the course, and no error but a user's is raised."""

from __future__ import annotations

import contextlib
import datetime
import json
import stat
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.course import Course
from grading.errors import UserError
from grading.intake.archive import open_archive
from grading.intake.choose import ReadingOptions
from grading.intake.names import wrong_with_student
from grading.intake.take_in import take_in
from tests.grading.deliveries import make_small_course
from tests.grading.lessons import LAB
from tests.grading.odd_archives import GOOD, make_zip

UTC = datetime.UTC


STEPS = ("..", ".", "", "C:", "a\\b", "~", "a*", "\x00", "x" * 300, "submitted", ".grading", LAB)
NAMES = ("ada", "Ada", "zoë", "Ann Lee_12_assignsubmission_file_", "lee_LATE_1_2_x.ipynb", f"{LAB}.ipynb", "x.zip")
PARTS = st.sampled_from((*STEPS, *NAMES, "timestamp.txt"))
CONTENTS = st.sampled_from([GOOD, b"", b"{}", b"[" * 100_000, b"../../x", b'{"cells": 3}', bytes(2**21)])


@st.composite
def members(draw) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo("x", draw(st.sampled_from([(1980, 1, 1, 0, 0, 0), (2026, 1, 1, 0, 0, 0)])))
    info.filename = "/".join(draw(st.lists(PARTS, min_size=1, max_size=4))).encode("utf-8", "replace").decode()
    info.create_system = 3
    info.external_attr = draw(st.sampled_from([0, stat.S_IFLNK, stat.S_IFREG | 0o4777, stat.S_IFCHR])) << 16
    info.compress_type = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))
    info.extra = draw(
        st.sampled_from([b"", b"UT\x05\x00\x01\xff\xff\xff\x7f", b"UT\x05\x00\x01", b"up\x09\x00\x01aaaa"])
    )
    return info, draw(CONTENTS)


def tree(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@settings(max_examples=100, deadline=None)
@given(
    st.lists(members(), max_size=6),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8),
    st.floats(0.3, 1),
)
def test_whatever_the_archive_nothing_is_written_elsewhere_and_nothing_but_user_errors_is_raised(
    contents, flips, kept_part
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        course = make_small_course(top / "in" / "course")
        path = make_zip(top / "a.zip", contents)
        data = bytearray(path.read_bytes())
        for where, value in flips:
            data[int(where * len(data))] = value
        if kept_part < 0.4:
            del data[int(kept_part * len(data)) :]
        path.write_bytes(data)
        before = tree(top)
        with contextlib.suppress(UserError), open_archive(path, UTC) as arrivals:
            take_in(course, LAB, arrivals, ReadingOptions(), "a.zip")
        written = set(tree(top)) - set(before)
        assert {name: tree(top)[name] for name in before} == before
        for name in written:
            _, inside, kind, *rest = name.split("/")
            assert inside == "course" and kind in ("submitted", ".grading")
            if kind == "submitted":
                student, lab, file = rest
                assert lab == LAB and file in (f"{LAB}.ipynb", "timestamp.txt") and not wrong_with_student(student)
                if file.endswith(".ipynb"):
                    json.loads((top / name).read_bytes())
        assert not any(path.is_symlink() for path in top.rglob("*"))
        assert Course.at(course.root).students(LAB) == sorted(
            {name.split("/")[3] for name in written if "submitted/" in name}
        )
