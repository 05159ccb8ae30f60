"""The order of the tests for several processes: nothing lost, long files first and apart, a file's tests together."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.order import LONG_S, Clock, dealt


def test_long_files_head_the_shares_and_quick_ones_fill_them() -> None:
    files = [*"qqqq", *"aa", *"rr", "b", *"cc", "s"]
    order = dealt(files, {"a": 50, "b": 30, "c": 30, "q": LONG_S - 1}, 2)
    assert "".join(files[index] for index in order) == "aaqqqq" + "bccrrs"


def test_so_many_long_ones_that_nothing_fills_up() -> None:
    files = [*"aaaa", "b", "c"]
    assert "".join(files[index] for index in dealt(files, {"a": 9, "b": 8, "c": 7}, 2)) == "aaaabc"


@given(
    st.lists(st.sampled_from("abcdef")),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 100)),
    st.integers(1, 4),
)
def test_no_test_is_lost_and_a_long_file_stays_in_its_order(
    files: list[str], seconds: dict[str, float], n: int
) -> None:
    files = sorted(files)
    order = dealt(files, seconds, n)
    assert sorted(order) == list(range(len(files)))
    for name in set(files):
        own = [index for index in order if files[index] == name]
        assert own == sorted(own)
        if seconds.get(name, 0.0) >= LONG_S:
            places = [order.index(index) for index in own]
            assert places == list(range(places[0], places[0] + len(own)))


def test_what_files_take_is_added_up_and_what_is_gone_or_quick_is_forgotten(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.order.FILE", tmp_path / "seconds.json")
    (tmp_path / "seconds.json").write_text(json.dumps({"old.py": 40, "gone.py": 40, "quick.py": 40}))
    for name in ("old.py", "new.py", "quick.py"):
        (tmp_path / name).write_text("")
    clock = Clock()
    for test, seconds in (("new.py::a", 4.0), ("new.py::b[1]", 3.4), ("quick.py::c", 1.0)):
        clock.pytest_runtest_logreport(
            pytest.TestReport(test, ("", 0, ""), {}, "passed", None, "call", duration=seconds)
        )
    clock.pytest_sessionfinish()
    assert json.loads((tmp_path / "seconds.json").read_text()) == {"new.py": 7, "old.py": 40}
