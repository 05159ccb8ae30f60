"""The literal in the docstring of each piece of data is one: it can be evaluated, and makes an object of that class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

import pytest
import torch

from grading.hidden import Hidden
from labkit import spec
from labkit.check.verdict import Verdict
from labkit.spec import Case


@dataclass(frozen=True)
class Rows(Case):
    n_rows: int = 1
    n_cols: int = 1


DATA = (
    "Answer",
    "Budget",
    "Case",
    "CaseRun",
    "Exercise",
    "Hint",
    "Observation",
    "Oracle",
    "Run",
    "Tolerance",
    "Trouble",
)
NAMES = {**vars(spec), "Verdict": Verdict, "Hidden": Hidden, "Rows": Rows, "torch": torch}


@pytest.mark.parametrize(
    "kind", [*(getattr(spec, name) for name in DATA), Verdict, Hidden], ids=lambda kind: kind.__name__
)
def test_a_docstring_shows_one(kind: type) -> None:
    assert isinstance(example_of(kind), kind)


def example_of(kind: type) -> object:
    """What the block that is indented once more stands for."""
    (block,) = re.findall(r"^\n((?: {8}.*\n)+)", kind.__doc__, re.MULTILINE)
    return eval(dedent(block), dict(NAMES))


def test_an_example_that_no_longer_fits_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rows, "__doc__", "Rows.\n\n        Rows(n=3)\n")
    with pytest.raises(TypeError, match="unexpected keyword argument 'n'"):
        example_of(Rows)
