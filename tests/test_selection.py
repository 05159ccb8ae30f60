"""No test is lost between the lanes: each is in `make test-all` exactly once, in one of its parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.changed_labs import LABS
from tests.selection import LANES, PARTS, PLACES

REPO = Path(__file__).resolve().parents[1]
SUITE = """
import pytest

def test_quick(): pass
@pytest.mark.lab("{lab}")
def test_quick_of_a_lab(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.browser
def test_page(): pass
@pytest.mark.gpu
def test_gpu(): pass
@pytest.mark.gpu
@pytest.mark.lab("{lab}")
@pytest.mark.full("kernels")
def test_gpu_of_a_lab(): pass
@pytest.mark.full("attacks")
def test_attack(): pass
@pytest.mark.slow
@pytest.mark.full("answers")
@pytest.mark.lab("{lab}")
def test_answer(): pass
@pytest.mark.full("answers")
@pytest.mark.lab("{lab}")
@pytest.mark.later
def test_later(): pass
"""
CONFTEST = """
import tests.selection
from tests.changed_labs import LabsInFull
tests.selection.labs_in_full = lambda: LabsInFull({in_full!r}, "for a test")
pytest_plugins = ["tests.selection"]
"""


def run_of(folder: Path, suite: str, in_full: list[str], *arguments: str) -> tuple[list[str], str]:
    """The names of the tests of a small suite that pytest would run with these arguments, and what it prints."""
    (folder / "conftest.py").write_text(CONFTEST.format(in_full=in_full))
    (folder / "test_suite.py").write_text(suite)
    places = folder / "places.json"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", str(folder), "--places", str(places), *arguments, str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    # The plugins of the environment take seconds to load, and none is needed here.
    environment |= {"PYTHONPATH": str(REPO), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    found = json.loads(places.read_text()) if places.exists() else []
    return [each["test"].partition("::test_")[2] for each in found], done.stdout + done.stderr


ALL = {"quick", "quick_of_a_lab", "slow", "page", "attack", "answer", "later"}
EXPECTED = {
    ("--lane=check",): {"quick", "quick_of_a_lab"},
    ("--lane=test",): ALL - {"attack", "answer", "later"},
    ("--lane=rest",): {"attack", "answer", "later"},
    ("--lane=all",): ALL,
    (): ALL | {"gpu", "gpu_of_a_lab"},
    ("--part=answers",): {"answer", "later"},
    ("--part=slow", "--part=attacks"): {"slow", "page", "attack"},
    ("--lane=test", "--part=attacks"): set(),
    ("--lane=all", f"--lab={LABS[0]}"): {"quick_of_a_lab", "answer", "later"},
    ("--lane=all", f"--lab={LABS[1]}"): set(),
    ("--lane=rest", "--lab=none"): {"attack"},
}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", EXPECTED, ids=" ".join)
def test_a_lane_runs_what_its_marks_say(tmp_path, arguments: tuple[str, ...]) -> None:
    names, _ = run_of(tmp_path, SUITE.format(lab=LABS[0]), [], *arguments)
    assert Counter(names) == Counter(EXPECTED[arguments])


@pytest.mark.slow
def test_a_lab_in_full_moves_from_the_rest_into_test(tmp_path) -> None:
    suite = SUITE.format(lab=LABS[0])
    names, printed = run_of(tmp_path, suite, [LABS[0]], "--lane=test")
    assert Counter(names) == Counter(ALL - {"attack", "later"})
    assert f"labs in full: {LABS[0]} (for a test). Everything: make test-all" in printed
    assert run_of(tmp_path, suite, [LABS[0]], "--lane=rest")[0] == ["attack", "later"]
    assert run_of(tmp_path, suite, [LABS[1]], "--lane=rest")[0] == ["attack", "answer", "later"]


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('full("attack")', "test_suite.py::test_x: no part 'attack'; parts: answers, attacks,"),
        ('full("quick")', "no part 'quick'; parts: answers"),
        ("full", "write full with one text, such as full('05')"),
        ("lab(5)", "write lab with one text, such as lab('05')"),
        ('lab("99")', f"no lab 99; labs: {', '.join(LABS)}"),
        (f'lab("{LABS[0]}")\n@pytest.mark.lab("{LABS[1]}")', f"belongs to several labs: {LABS[0]}, {LABS[1]}"),
        ("slwo", "'slwo' not found in `markers`"),
    ],
)
def test_a_wrong_mark_is_an_error(tmp_path, mark: str, said: str) -> None:
    suite = f"import pytest\n@pytest.mark.{mark}\ndef test_x(): pass\n"
    names, printed = run_of(tmp_path, suite, [], "--strict-markers")
    assert not names
    assert said in printed


def test_every_collected_test_is_in_one_part_and_in_the_right_lanes(request) -> None:
    """Of all that this run of pytest has collected, before it selected; the whole folder, where `make` runs it."""
    places = request.config.stash[PLACES]
    assert max(Counter(test for test, _ in places).values()) == 1
    for in_full in (frozenset(), frozenset(LABS[:1]), frozenset(LABS)):
        lanes = {lane: {test for test, place in places if place.is_in(lane, in_full)} for lane in LANES}
        assert lanes["check"] <= lanes["test"] <= lanes["all"]
        assert lanes["test"] | lanes["rest"] == lanes["all"]
        assert not lanes["test"] & lanes["rest"]
        assert {test for test, place in places if place.part != "gpu"} == lanes["all"]
        parts = [{test for test, place in places if place.part == part} for part in PARTS]
        assert sum(map(len, parts)) == len(lanes["all"])


def test_the_whole_folder_has_a_test_of_each_part_and_each_file_has_tests(request) -> None:
    places = request.config.stash[PLACES]
    collected = {test.partition("::")[0] for test, _ in places}
    files = {path.relative_to(REPO).as_posix() for path in (REPO / "tests").rglob("test_*.py")}
    if len(collected) < len(files) / 2:
        pytest.skip("only some of the tests were asked for")
    assert files == collected
    assert {place.part for _, place in places} == {*PARTS, "gpu"}
