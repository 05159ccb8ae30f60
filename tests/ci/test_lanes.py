"""What .ci/run runs, in which order, what it leaves out, and when it fails."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.changed_labs import LABS
from tests.selection import PARTS

REPO = Path(__file__).resolve().parents[2]
FIRST, SECOND = LABS[:2]


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ci_lanes", REPO / ".ci" / "lanes.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


lanes = loaded()
Unit = lanes.Unit


class Machine:
    """Runs nothing: each command takes the seconds, and ends with the code, that it is said to.

    fails_once: what passes when it is tried again.
    """

    def __init__(
        self,
        minutes: float,
        takes: dict[str, float] | None = None,
        fails: tuple[str, ...] = (),
        fails_once: tuple[str, ...] = (),
    ) -> None:
        self.left = 60 * minutes
        self.takes, self.fails, self.fails_once = takes or {}, fails, fails_once
        self.commands: list[str] = []

    def left_s(self) -> float:
        return self.left

    def run(self, command: list[str], within_s: float) -> tuple[int | None, float]:
        text = " ".join(command)
        self.commands.append(text)
        seconds = next((takes for name, takes in self.takes.items() if name in text), 60.0)
        self.left -= min(seconds, within_s)
        failing = self.fails if lanes.AGAIN in text else self.fails + self.fails_once
        return (None if seconds > within_s else int(any(name in text for name in failing))), min(seconds, within_s)


def report_of(machine: Machine, *units: Unit):
    return lanes.run_all([("make test", ["make", "test"])], lambda: list(units), machine.left_s, machine.run)


ATTACKS, BROWSER, KILLS = Unit("attacks", "", 600), Unit("browser", "", 60), Unit("kills", "", 120)


def test_what_fits_is_run_in_order_and_the_rest_is_said() -> None:
    machine = Machine(10)
    report = report_of(machine, BROWSER, ATTACKS, KILLS)
    assert machine.commands == ["make test", "make test-all PART=browser", "make test-all PART=kills"]
    assert report.left_out == [ATTACKS]
    assert not report.failed
    assert report.in_words().splitlines() == [
        ".ci/run: passed     1.0 min  make test",
        ".ci/run: passed     1.0 min  browser",
        ".ci/run: passed     1.0 min  kills",
        ".ci/run: left out for lack of time: attacks",
    ]


def test_what_turns_out_not_to_fit_is_left_out_too_and_is_no_failure() -> None:
    report = report_of(Machine(10, {"browser": 3000}), BROWSER, KILLS)
    assert report.left_out == [BROWSER, KILLS]
    assert not report.failed


def test_a_failing_part_is_a_failure_and_the_others_run_all_the_same() -> None:
    machine = Machine(75, fails=("browser",))
    report = report_of(machine, BROWSER, ATTACKS, KILLS)
    assert report.failed and not report.left_out
    assert [outcome for _, _, outcome in report.ran] == ["passed", "failed", "passed", "passed"]
    assert "nothing was left out" in report.in_words()
    again = f"make test-all PART=browser {lanes.AGAIN}"
    assert [command for command in machine.commands if lanes.AGAIN in command] == [again]


def test_what_passes_when_it_is_tried_again_is_no_failure_and_is_said() -> None:
    machine = Machine(75, fails_once=("kills",))
    report = report_of(machine, BROWSER, KILLS)
    assert not report.failed
    assert report.in_words().splitlines()[:3] == [
        ".ci/run: passed     1.0 min  make test",
        ".ci/run: passed     1.0 min  browser",
        ".ci/run: unsteady   2.0 min  kills",
    ]


def test_a_failure_that_there_is_no_time_to_try_again_is_one() -> None:
    report = report_of(Machine(1.5, fails_once=("make test",)))
    assert report.failed
    assert report.ran == [("make test", 90.0, "failed")]


@pytest.mark.slow
def test_the_second_try_runs_what_failed_and_is_a_failure_where_nothing_did(tmp_path) -> None:
    """With the real pytest: a test that fails once, one that always does, and a run that failed for another reason."""
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n\n"
        "def test_steady():\n    with Path('steady').open('a') as file:\n        file.write('x')\n\n"
        "def test_once():\n    seen = Path('seen').exists()\n    Path('seen').touch()\n    assert seen\n\n"
        "def test_always():\n    assert Path('mended').exists()\n"
    )

    def code(*more: str) -> int:
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, "-m", "pytest", "-q", *more]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True).returncode

    again = lanes.AGAIN.partition("=")[2].split()
    assert code() == code(*again) == 1
    (tmp_path / "mended").touch()
    assert code(*again) == 0
    assert (tmp_path / "steady").read_text() == "x"
    assert code(*again) == 5


@pytest.mark.parametrize(
    ("how", "said"), [({"fails": ("make test",)}, "failed"), ({"takes": {"test": 6e3}}, "stopped")]
)
def test_make_test_has_to_pass_and_in_time(how: dict, said: str) -> None:
    report = report_of(Machine(75, **how))
    assert report.failed
    assert report.ran[0][2] == said
    assert ("the rest of make test-all was not looked at" in report.in_words()) == (said == "stopped")


def test_what_is_left_but_cannot_be_listed_is_a_failure() -> None:
    def fail() -> list[Unit]:
        raise subprocess.CalledProcessError(2, "make")

    machine = Machine(75)
    report = lanes.run_all([("make test", ["make", "test"])], fail, machine.left_s, machine.run)
    assert report.failed
    assert report.ran[-1] == ("looking for what is left", 0.0, "failed")


def place(test: str, part: str, lab: str = "") -> dict[str, str]:
    return {"test": test, "part": part, "lab": lab}


def test_a_part_is_cut_by_labs_and_its_time_shared_out() -> None:
    places = [place(f"a.py::t[{n}]", "answers", FIRST) for n in range(3)]
    places += [place("b.py::t", "answers", SECOND), place("c.py::t", "kills"), place("d.py::t", "kills")]
    found = {(unit.part, unit.lab): unit for unit in lanes.units_of(places)}
    assert list(found) == [("answers", FIRST), ("answers", SECOND), ("kills", "none"), ("triton", "")]
    assert found["answers", FIRST].seconds == pytest.approx(lanes.SECONDS["answers"] * 3 / 4)
    assert found["kills", "none"].files == ("c.py", "d.py")
    assert found["kills", "none"].seconds == lanes.SECONDS["kills"]
    command = ["make", "test-all", "PART=answers", "LANE=rest", f"LAB={FIRST}", "FILES=a.py"]
    assert found["answers", FIRST].command() == command
    assert found["triton", ""].command() == ["make", "test-all", "PART=triton"]
    assert lanes.units_of([place("x.py::t", "new")])[0].seconds == lanes.UNKNOWN_S


def test_what_the_last_commits_touched_comes_first() -> None:
    of_first = Unit("answers", FIRST, 90, ("tests/exercises/test_answers.py",))
    of_second = Unit("answers", SECOND, 80, ("tests/exercises/test_answers.py",))
    units = [ATTACKS, BROWSER, KILLS, of_first, of_second]
    untouched = [BROWSER, of_second, of_first, KILLS, ATTACKS]
    assert lanes.in_order(units, []) == lanes.in_order(units, [["README.md"]]) == untouched
    commits = [[], [f"labkit/oracles/lab{FIRST}/x.py"], ["grading/worker/job.py", "README.md"]]
    assert lanes.in_order(units, commits) == [of_first, ATTACKS, BROWSER, of_second, KILLS]
    assert lanes.in_order(units, [["labkit/measures.py"]])[:2] == [of_second, of_first]
    assert lanes.in_order(units, [["tests/exercises/test_answers.py"]])[:2] == [of_second, of_first]


def test_every_part_has_its_time_and_every_room_is_there() -> None:
    assert set(lanes.SECONDS) == {*PARTS, "triton"} - {"quick", "slow"}, "SECONDS of .ci/lanes.py names every part"
    assert set(lanes.ROOMS) <= set(lanes.SECONDS)
    for room in {room for rooms in lanes.ROOMS.values() for room in rooms}:
        assert (REPO / room).is_dir() or (REPO / f"{room}.py").is_file(), room


def test_the_last_commits_of_this_repository_are_read(tmp_path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert lanes.last_commits(tmp_path / "nowhere") == [[]]
    git("init", "-q")
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-q", "-m", name)
    (tmp_path / "a").write_text("changed")
    assert lanes.last_commits(tmp_path) == [["a"], ["b"], ["a"]]
    assert lanes.last_commits(tmp_path, n=1) == [["a"], ["b"]]


def test_a_command_is_run_and_one_that_takes_too_long_is_ended_with_what_it_started(monkeypatch) -> None:
    assert lanes.run_command([sys.executable, "-c", "raise SystemExit(3)"], 60)[0] == 3
    # For one that did not end when it is asked to, this would wait for ever.
    monkeypatch.setattr(lanes, "STOP_S", 1e6)
    code, _ = lanes.run_command(["sh", "-c", "sleep 600 & sleep 600"], 0.5)
    assert code is None


def test_the_environment_is_not_needed_to_begin() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-I", ".ci/lanes.py", "--help"], cwd=REPO, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "--minutes" in done.stdout


@pytest.mark.parametrize("text", ["", "soon", "-5"])
def test_what_is_no_number_of_minutes_is_refused(text: str, capsys) -> None:
    with pytest.raises(SystemExit):
        lanes.main([f"--minutes={text}"])
    assert f"{text!r} is no number of minutes" in capsys.readouterr().err


def test_the_scheduled_workflow_runs_every_part() -> None:
    text = (REPO / ".github" / "workflows" / "test-all.yml").read_text()
    (job,) = yaml.safe_load(text)["jobs"].values()
    assert job["strategy"]["matrix"]["part"] == [*PARTS, "triton"], "test-all.yml names them as tests/selection.py does"
    assert job["strategy"]["fail-fast"] is False
    assert job["env"]["LABS_REQUIRE_LANES"] == "1"
    assert job["steps"][-1]["run"] == "make test-all PART=${{ matrix.part }}"


def test_the_makefile_takes_every_part_alone(tmp_path) -> None:
    make = ["make", "-n", "test-all", f"VENV={tmp_path}", "OLD_TRITON=0"]
    for part in (*PARTS, "triton"):
        lines = subprocess.run([*make, f"PART={part}"], cwd=REPO, capture_output=True, text=True, check=True).stdout
        assert (f"--lane all --part={part} " in lines) == (part != "triton")
        assert ("triton==0" in lines) == (part == "triton")
    lines = subprocess.run(make, cwd=REPO, capture_output=True, text=True, check=True).stdout
    assert "--lane all -n" in lines and "triton==0" in lines and "ruff check" in lines


def table_of_parts() -> dict[str, set[str]]:
    """Of CONTRIBUTING's "you touched | run": the parts of each room that it names."""
    text = (REPO / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = text.partition("| you touched | run |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    found: dict[str, set[str]] = {}
    for row in rows:
        touched, run = row.strip("| ").split(" | ")
        parts = re.search(r'PART="?([a-z ]+)', run)[1].split()
        names = re.findall(r"`([^`]+)`", touched)
        # The top folder is said once in a row.
        folder = "".join(names[:1]).rpartition("/")[0]
        for name in names:
            found[f"{folder}/{name}" if folder and "/" not in name else name] = set(parts)
    return found


def test_contributing_names_the_parts_that_are_run_for_a_room() -> None:
    """All of them: what .ci/run looks at first is what it asks of contributors."""
    rooms = {room for rooms in lanes.ROOMS.values() for room in rooms}
    assert table_of_parts() == {room: {part for part in lanes.ROOMS if room in lanes.ROOMS[part]} for room in rooms}
