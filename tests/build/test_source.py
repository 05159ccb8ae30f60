"""Cells know their lines in the file, whatever the file looks like."""

import pytest

from grading.build.source import BadSource, cells_of, read
from tests.build import lesson

ODD = '''# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Title
#
# ```
# # %% in a fence
# ```
#%%

x = """
# %% in a string
"""


# %% [markdown]
"""

quoted text
"""
# %% a title tags=["figure"]
# # %% commented
%time
# %% [raw]
# raw
'''


def test_each_cell_has_the_line_of_its_header():
    cells = cells_of(ODD)
    assert [(cell.line, cell.kind) for cell in cells] == [
        (8, "markdown"),
        (14, "code"),
        (21, "markdown"),
        (26, "code"),
        (29, "raw"),
    ]


@pytest.mark.parametrize("needle", ["# Title", 'x = """', "# %% in a string", "quoted text", "%time", "raw"])
def test_a_line_of_a_cell_is_found_in_the_file(needle):
    file = ODD.split("\n")
    cell, offset = next(
        (cell, i) for cell in cells_of(ODD) for i, line in enumerate(cell.lines) if line.strip() == needle
    )
    assert needle in file[cell.line_of(offset) - 1]


def test_every_line_of_the_sample_is_found():
    body = lesson.source()
    file = body.split("\n")
    for cell in cells_of(body):
        for offset, line in enumerate(cell.lines):
            assert line in file[cell.line_of(offset) - 1]


@pytest.mark.parametrize("name", ["7_lab.py", "lab.py", "20-lab.py", "20_Lab.py", "20_.py", "20_lab.txt"])
def test_a_bad_file_name_is_refused(tmp_path, name):
    with pytest.raises(BadSource, match=r":1: the file must be called NN_slug\.py"):
        read(lesson.write(tmp_path, lesson.source(), name))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(BadSource, match=r"20_lab\.py:1: cannot be read: .*No such file"):
        read(tmp_path / "20_lab.py")


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "20_lab.py").write_bytes(b"# %%\nx = '\xff'\n")
    with pytest.raises(BadSource, match="cannot be read: 'utf-8' codec"):
        read(tmp_path / "20_lab.py")


def test_text_before_the_first_cell_is_refused(tmp_path):
    path = lesson.write(tmp_path, '\n"""A docstring."""\n\n' + lesson.source())
    with pytest.raises(BadSource, match=r":2: text before the first cell; every cell starts with a line # %%"):
        read(path)


def test_files_are_named_from_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = lesson.write(tmp_path / "solutions", lesson.source())
    assert read(path).file == "solutions/20_small_lab.py"
