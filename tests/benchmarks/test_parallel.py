"""The benchmark of parallel training: every count is the formula's, for every method and number of ranks."""

from __future__ import annotations

import pytest

from benchmarks import parallel


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
