"""A submission's file, whatever is in it: read as far as it makes sense, or refused with the reason."""

from __future__ import annotations

import json
import resource
import time
from dataclasses import astuple

import nbformat
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from grading.build import student_version
from grading.files import Unreadable
from grading.rebuild import read_submission
from grading.rebuild.merge import _without_tags
from grading.rebuild.submission import SubmittedCell, parse_submission
from tests.grading.lessons import solved

pytestmark = pytest.mark.filterwarnings("ignore::nbformat.warnings.DuplicateCellId")
FIELDS = ("nbformat", "cells", "worksheets", "metadata", "nbgrader", "grade_id", "id", "cell_type", "source", "input")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x.ipynb is empty: ask for a new copy"),
        (b" \n", "x.ipynb is empty: ask for a new copy"),
        (b'\xef\xbb\xbf{"nbformat": 4}', "begins with a byte order mark"),
        (b"{", "not a complete notebook"),
        (b"[]", "not a complete notebook"),
        (b'{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "not a complete notebook"),
        (b'{"nbformat": 99}', "not a complete notebook"),
        (b"\x89PNG\r\n\xff\xfe", "not a text file"),
        (json.dumps(student_version(solved()))[:700].encode(), "not a complete notebook"),
    ],
)
def test_unreadable_files_are_told_with_the_reason(tmp_path, data: bytes, message: str) -> None:
    path = tmp_path / "x.ipynb"
    path.write_bytes(data)
    with pytest.raises(Unreadable, match=message):
        read_submission(path)


def test_a_missing_file_is_told(tmp_path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        read_submission(tmp_path / "x.ipynb")


def test_a_machine_without_descriptors_is_not_the_files_fault(tmp_path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text("{}")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            read_submission(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_old_notebook_format_is_read(tmp_path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(nbformat.writes(nbformat.convert(student_version(solved()), 3), version=3))
    assert len(read_submission(path).cells) == 7


def notebook_of(**changes: object) -> bytes:
    """A notebook with one code cell, some of whose fields are changed."""
    cell = {"cell_type": "code", "source": "x", "metadata": {}, "outputs": [], "execution_count": None, "id": "a"}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{**cell, **changes}]}).encode()


@pytest.mark.parametrize(
    ("odd", "read"),
    [
        ({"source": ["a", "b"]}, SubmittedCell("a", "code", "ab")),
        ({"source": []}, SubmittedCell("a", "code", "")),
        ({"source": "\ud800"}, SubmittedCell("a", "code", "?")),
        ({"metadata": 3}, SubmittedCell("a", "code", "x")),
        ({"metadata": {"nbgrader": 3}}, SubmittedCell("a", "code", "x")),
        ({"metadata": {"nbgrader": {"grade_id": ["b"]}}}, SubmittedCell("a", "code", "x")),
        ({"metadata": {"nbgrader": {"grade_id": "b" * 10**6}}}, SubmittedCell("a", "code", "x")),
        ({"metadata": {"nbgrader": {"grade_id": "b"}}}, SubmittedCell("b", "code", "x")),
        ({"id": 7}, SubmittedCell("", "code", "x")),
        ({"id": {"a": 1}}, SubmittedCell("", "code", "x")),
        ({"cell_type": ["code"]}, SubmittedCell("a", "raw", "x")),
        ({"cell_type": "\x1b[2J"}, SubmittedCell("a", "raw", "x")),
        (
            {"attachments": 3, "outputs": [{"text": float("nan")}], "execution_count": 10**4000},
            SubmittedCell("a", "code", "x"),
        ),
    ],
)
def test_odd_cells_are_read_as_far_as_they_make_sense(odd: dict, read: SubmittedCell) -> None:
    assert parse_submission(notebook_of(**odd), "x.ipynb").cells == (read,)


@pytest.mark.parametrize("source", [3, None, {"a": 1}, ["a", 3], [["a"]], True])
def test_a_source_that_is_no_text_is_refused_by_the_number_of_its_cell(source) -> None:
    with pytest.raises(Unreadable) as caught:
        parse_submission(notebook_of(source=source), "x.ipynb")
    reason = "x.ipynb is not a complete notebook (the source of its cell 1 is no text): ask for a new copy"
    assert str(caught.value) == reason


@pytest.mark.parametrize("version", ["\x1b]0;x\x07", "4", 4.0, True, None, 5, [4], 10**4000])
def test_a_version_that_is_none_is_refused_without_being_quoted(version) -> None:
    data = json.dumps({"nbformat": version, "cells": []}).encode()
    with pytest.raises(Unreadable) as caught:
        parse_submission(data, "x.ipynb")
    reason = (
        "x.ipynb is not a complete notebook (it does not say that its format is of version 2 to 4): ask for a new copy"
    )
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    "text", ["](" + " " * 2**20, "]" + " " * 2**20, "](<" * 2**18, "] (" * 2**18, "<" * 2**20, "![" * 2**19]
)
def test_markdown_of_a_student_is_made_harmless_in_a_time_as_its_length(text) -> None:
    began = time.process_time()
    _without_tags(text)
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("markdown", "harmless"),
    [
        ("[a](https://x.org)", "[a](https://x.org)"),
        ("[a](  < https://x.org)", "[a](  < https://x.org)"),
        ("[a](#part)", "[a](#part)"),
        ("[a]  (  javascript:x)", "[a]\u200b  (  javascript:x)"),
        ("[a]: data:x", "[a]\u200b: data:x"),
        ("![a](https://x.org/a.png)", "!\u200b[a](https://x.org/a.png)"),
        ("<b>", "<\u200bb>"),
        ("1 < 2", "1 < 2"),
    ],
)
def test_only_links_to_the_web_are_left_in_a_students_markdown(markdown, harmless) -> None:
    assert _without_tags(markdown) == harmless


def with_metadata(metadata: bytes) -> bytes:
    return b'{"nbformat": 4, "cells": [], "metadata": ' + metadata + b"}"


@pytest.mark.parametrize(
    "metadata",
    [
        b"[" + b"{}," * 2**20 + b"{}]",
        b"[" + b"[]," * 2**20 + b"[]]",
        b"[" + b"1," * 2**20 + b"1]",
        b"[" + b'"",' * 2**20 + b'""]',
        b'{"a":' * 2**19 + b"1" + b"}" * 2**19,
        b'["' + b'\\"' * 10 + b'"' + b",1" * 2**20 + b"]",
    ],
)
def test_values_of_json_are_counted_before_they_are_made(metadata) -> None:
    with pytest.raises(Unreadable, match=r"x\.ipynb has more than 1,048,576 JSON values: clear its outputs"):
        parse_submission(with_metadata(metadata), "x.ipynb")


@pytest.mark.parametrize("text", [b",[{" * 2**20, b'\\"' * 2**20, b"\\\\" * 2**20, b'\\",[{' * 2**20])
def test_what_stands_in_texts_is_no_value(text) -> None:
    assert parse_submission(with_metadata(b'"' + text + b'"'), "x.ipynb").cells == ()


@pytest.mark.parametrize("end", [b'"', b'"\\', b'"\\"', b" ", b"\\", b'"' + b'\\"' * 2**22, b" " * 2**24, b",[{" * 10])
def test_counting_takes_time_as_the_length_does(end) -> None:
    """Whatever the text breaks off in. An expression that looks back would take minutes for these."""
    began = time.process_time()
    with pytest.raises(Unreadable, match="not a complete notebook"):
        parse_submission(b'"' + b",[{" * 2**20 + b'" ' + b" " * 2**24 + end, "x.ipynb")
    assert time.process_time() - began < 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("00-warm-up"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@seed(20261122)
@settings(max_examples=400, deadline=None)
@given(
    JSON | st.fixed_dictionaries({"nbformat": st.sampled_from([2, 3, 4]), "cells": st.lists(JSON), "worksheets": JSON})
)
def test_whatever_the_json_it_is_a_submission_or_unreadable(value) -> None:
    """Wrong types in every place, NaN, and halves of characters; what is read goes into a file again."""
    try:
        cells = parse_submission(json.dumps(value).encode(), "x.ipynb").cells
    except Unreadable as error:
        assert str(error).startswith("x.ipynb ") and str(error).isprintable()
    else:
        assert all(type(text) is str and text.encode() is not None for cell in cells for text in astuple(cell))


@pytest.mark.slow
@seed(20261122)
@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 10**6), st.integers(1, 10**6))
def test_whatever_is_damaged_it_is_a_submission_or_unreadable(noise, where, length) -> None:
    data = bytearray(json.dumps(student_version(solved())).encode())
    at = where % len(data)
    data[at : at + length % 300] = noise
    try:
        parse_submission(bytes(data), "x.ipynb")
    except Unreadable as error:
        assert str(error).startswith("x.ipynb ") and str(error).isprintable()
