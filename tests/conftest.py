"""One thread for every test process, because several of them share few cores; and the longest tests first."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["tests.selection"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that are given more time than the others come first, so that none of them is left over at the end.

    Within the rest the order stays, so that tests that share a fixture stay together.
    """
    items.sort(key=_own_timeout_s, reverse=True)


def _own_timeout_s(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark and mark.args else 0.0
