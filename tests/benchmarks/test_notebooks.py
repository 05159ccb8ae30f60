"""The benchmark of notebooks: the cell that takes longest is named, and what takes CPU time is told from waiting."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from benchmarks import notebooks


@pytest.mark.slow
def test_a_cell_is_measured_in_its_kernel() -> None:
    busy = "import time\nwhile time.process_time() < 3: pass\ntime.sleep(2)"
    ids = {"short": "1 + 1", "long": busy, "last": "2 + 2"}
    cells = [new_markdown_cell("Text."), *(new_code_cell(text, id=name) for name, text in ids.items())]
    found = notebooks.seconds_of(new_notebook(cells=cells))
    assert found["longest_cell"] == "long"
    assert 2 <= found["longest_cell_s"] <= found["wall_s"]
    assert found["cpu_s"] >= 3


def test_a_lab_that_there_is_not_is_named(capsys) -> None:
    with pytest.raises(SystemExit):
        notebooks.main(["--labs", "00", "77"])
    assert "no lab 77; there are: 00 01 02" in capsys.readouterr().err
