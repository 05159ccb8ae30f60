"""Which tests run: `make check`, `make test`, and every part of `make test-all`. A plugin of tests/conftest.py.

A test says by its marks where it belongs:

    (no mark)       quick: it runs in `check`, `test` and `test-all`
    slow            takes a second or more: `test` and `test-all`
    full("part")    one of PARTS, in `test-all` only
    lab("05")       of this lab; beside `full` it runs in `test` as well when that lab is one of `labs_in_full`
    later           beside `full` and `lab`: in `test-all` all the same
    gpu             needs an NVIDIA GPU: `make test-gpu` only, in none of the lanes

`--lane check | test | all | rest` selects one of them (`rest` is what `all` has beyond `test`), `--part` one part of it
and `--lab` one lab's tests ("none": those of no lab). Without any of these pytest runs whatever it is given.

Which tests a machine cannot run is not decided here: a test asks tests/lanes.py for its program.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.changed_labs import LABS, LabsInFull, labs_in_full

PARTS = {
    "quick": "the tests without a mark",
    "slow": "the rest of make test",
    "answers": "every wrong and every unusual answer, on public and hidden cases",
    "attacks": "every attack on every tier of isolation",
    "browser": "every journey in a real browser",
    "classroom": "pages for students and instructors: feedback, report, leaderboard, the site, in a real browser",
    "cluster": "grading on a Dask cluster",
    "determinism": "the same grades on every tier and after every interruption",
    "kernels": "the compiler's and the interpreter's slow comparisons",
    "kills": "processes and machines that die at any moment",
    "notebooks": "every notebook: solved, twice, and blank",
    "postgresql": "the gradebook on a PostgreSQL server",
    "ranks": "real ranks on gloo, again and again",
}
"""The parts of `make test-all`: each test is in exactly one. The first two are `make test`."""

LANES = ("check", "test", "all", "rest")
MARKS = (
    "slow: takes a second or more; left out of make check",
    'full(part): only in make test-all, in this part of it; with lab("05") also in make test while that lab changes',
    "lab(number): belongs to this lab",
    "later: with full(part) and lab(number), only in make test-all even while that lab changes",
    "browser: drives a real browser against a real JupyterLab; left out of make check",
    "gpu: needs an NVIDIA GPU; run by make test-gpu",
)

IN_FULL = pytest.StashKey[LabsInFull]()


@dataclass(frozen=True)
class Place:
    """Where a test belongs.

    part: one of PARTS, or "gpu".
    lab: two digits such as "05", or "" for a test of no lab.
    is_later: whether it waits for `all` even where its lab is tested in full.
    """

    part: str
    lab: str = ""
    is_later: bool = False

    def is_in(self, lane: str, in_full: frozenset[str]) -> bool:
        """Whether a lane runs it, where the labs `in_full` are tested in full."""
        in_check = self.part == "quick"
        in_full_now = self.lab in in_full and not self.is_later and self.part != "gpu"
        in_test = self.part in ("quick", "slow") or in_full_now
        in_all = self.part != "gpu"
        return {"check": in_check, "test": in_test, "all": in_all, "rest": in_all and not in_test}[lane]


PLACES = pytest.StashKey[list[tuple[str, Place]]]()
"""Every test that was collected, before any is left out."""


def place_of(item: pytest.Item) -> Place:
    """What the marks of a test say. Raises `pytest.UsageError` for a part or a lab that there is not."""
    labs = {_argument(mark, item) for mark in item.iter_markers("lab")}
    if not labs <= set(LABS):
        raise pytest.UsageError(f"{item.nodeid}: no lab {', '.join(sorted(labs - set(LABS)))}; labs: {', '.join(LABS)}")
    if len(labs) > 1:
        raise pytest.UsageError(f"{item.nodeid}: belongs to several labs: {', '.join(sorted(labs))}")
    lab = labs.pop() if labs else ""
    if item.get_closest_marker("gpu"):
        return Place("gpu", lab)
    if mark := item.get_closest_marker("full"):
        part = _argument(mark, item)
        if part not in PARTS or part in ("quick", "slow"):
            known = ", ".join(name for name in PARTS if name not in ("quick", "slow"))
            raise pytest.UsageError(f"{item.nodeid}: no part {part!r}; parts: {known}")
        return Place(part, lab, is_later=item.get_closest_marker("later") is not None)
    is_slow = item.get_closest_marker("slow") or item.get_closest_marker("browser")
    return Place("slow" if is_slow else "quick", lab)


def _argument(mark: pytest.Mark, item: pytest.Item) -> str:
    if len(mark.args) != 1 or mark.kwargs or not isinstance(mark.args[0], str):
        raise pytest.UsageError(f"{item.nodeid}: write {mark.name} with one text, such as {mark.name}('05')")
    return mark.args[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lanes")
    group.addoption("--lane", choices=LANES, help="check, test or all; rest: what all has beyond test")
    group.addoption("--part", choices=tuple(PARTS), action="append", help="only this part of the lane; may be repeated")
    group.addoption("--lab", choices=(*LABS, "none"), action="append", help="only this lab's tests; may be repeated")
    group.addoption("--places", type=Path, help="write a JSON list of the selected tests, their parts and labs")


def pytest_configure(config: pytest.Config) -> None:
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    received = getattr(config, "workerinput", {}).get("labs_in_full")
    config.stash[IN_FULL] = LabsInFull(*received) if received else labs_in_full()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Every process of pytest-xdist collects the same, whatever happens to the files meanwhile."""
    in_full = node.config.stash[IN_FULL]
    node.workerinput["labs_in_full"] = (sorted(in_full.labs), in_full.why)


def pytest_report_header(config: pytest.Config) -> list[str]:
    if config.getoption("lane") not in ("test", "rest"):
        return []
    return [f"labs in full: {config.stash[IN_FULL].in_words()}. Everything: make test-all"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    lane, parts, labs = (config.getoption(name) for name in ("lane", "part", "lab"))
    lane = lane or ("all" if parts else None)
    in_full = frozenset(config.stash[IN_FULL].labs)

    def is_selected(place: Place) -> bool:
        return (
            (lane is None or place.is_in(lane, in_full))
            and (not parts or place.part in parts)
            and (not labs or (place.lab or "none") in labs)
        )

    # Asked of every test, also where nothing is left out: a wrong mark is never overlooked.
    places = {item: place_of(item) for item in items}
    config.stash[PLACES] = [(item.nodeid, place) for item, place in places.items()]
    left_out = [item for item in items if not is_selected(places[item])]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if is_selected(places[item])]
    if file := config.getoption("places"):
        file.write_text(json.dumps([{"test": item.nodeid, **asdict(places[item])} for item in items]))
