"""The order in which pytest-xdist's processes run the tests: what takes longest first, dealt out like cards.

`--dist worksteal` gives each process one contiguous share of the list, of equal length, and lets one that is done take
from the end of another's. So the files that take long are dealt to the shares, each to the one that has least to do so
far, and head it; the quick ones fill the shares up, and are what is taken at the end. A file's tests stay together, in
their order: they share fixtures. tests/seconds.json knows what files take; `--write-seconds` renews it.

Without pytest-xdist the order stays as it is. Which tests run is not decided here.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("seconds.json")
LONG_S = 5.0
"""Files that take less are quick."""


def dealt(files: Sequence[str], seconds: Mapping[str, float], n_shares: int) -> list[int]:
    """The order of tests, given the file of each, as indices: the shares one after another.

    >>> dealt(["a", "b", "b", "c", "d", "d"], {"a": 9, "b": 30, "c": 20}, 2)
    [1, 2, 4, 3, 0, 5]
    """
    blocks = [[index for index, _ in group] for _, group in groupby(enumerate(files), key=lambda pair: pair[1])]
    takes = {id(block): seconds.get(files[block[0]], 0.0) for block in blocks}
    long = sorted((block for block in blocks if takes[id(block)] >= LONG_S), key=lambda block: -takes[id(block)])
    quick = [index for block in blocks if takes[id(block)] < LONG_S for index in block]
    shares: list[list[int]] = [[] for _ in range(n_shares)]
    loads = [0.0] * n_shares
    for block in long:
        least = loads.index(min(loads))
        shares[least] += block
        loads[least] += takes[id(block)]
    at = 0
    for number, share in enumerate(shares):
        # As pytest-xdist cuts the list.
        length = len(files) * (number + 1) // n_shares - len(files) * number // n_shares
        room = max(0, length - len(share))
        share += quick[at : at + room]
        at += room
    return [index for share in shares for index in share] + quick[at:]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("lanes").addoption("--write-seconds", action="store_true", help=f"renew tests/{FILE.name}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    n_processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if n_processes > 1 and FILE.is_file():
        order = dealt([_file(item.nodeid) for item in items], json.loads(FILE.read_text()), n_processes)
        items[:] = [items[index] for index in order]


class Clock:
    """Adds up what the tests of each file take, and writes it when all are done."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[_file(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        known = json.loads(FILE.read_text()) if FILE.is_file() else {}
        renewed = known | {file: round(seconds) for file, seconds in self.seconds.items()}
        kept = {file: renewed[file] for file in sorted(renewed) if renewed[file] >= LONG_S and Path(file).is_file()}
        FILE.write_text(json.dumps(kept, indent=1) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("write_seconds") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Clock())


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
