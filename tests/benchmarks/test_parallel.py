"""The benchmark of parallel training: every count is the formula's, for every method and number of ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import parallel

RESULTS = Path(parallel.__file__).parent / "results"


@pytest.mark.full("kernels")
def test_every_method_sends_what_its_formula_says() -> None:
    rows = parallel.volume()
    assert {(row["method"], row["ranks"]) for row in rows} == {(m, n) for m in parallel.METHODS for n in range(2, 17)}
    assert [row for row in rows if row["counted"] != row["formula"]] == []


def test_a_formula_that_is_wrong_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    method = parallel.METHODS["all-reduce, ring"]
    wrong = parallel.Method(method.exercise, method.case, lambda case: case.n_ranks * case.n_bytes)
    monkeypatch.setattr(parallel, "METHODS", {"as everybody says": wrong})
    monkeypatch.setattr(parallel, "RANKS", range(3, 5))
    assert all(row["counted"] != row["formula"] for row in parallel.volume())


def test_the_result_that_is_kept_has_the_counts_of_todays_cases() -> None:
    kept = json.loads((RESULTS / "parallel.json").read_text(encoding="utf-8"))["result"]
    counted = {(row["method"], row["ranks"]): row["counted"] for row in kept["volume"]}
    assert counted == {
        (name, n): int(method.formula(method.case(n)))
        for name, method in parallel.METHODS.items()
        for n in range(2, 17)
    }
    assert [row["exercise"] for row in kept["graded"]] == list(parallel.GRADED)
    assert not any(key.endswith("_s") for row in kept["graded"] for key in row)
