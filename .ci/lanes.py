#!/usr/bin/env python3
"""Runs `make test`, every solution notebook, and of the rest of `make test-all` what fits into the time.

What the last commits touched comes first. What is left out for lack of time is printed and is no failure; a failing
test is one, and so is a test whose program is missing (LABS_REQUIRE_LANES=1). A test that fails is tried a second time,
so that a machine's bad moment stops nobody's work; where it passes then, the summary names the lane, and the test is
to be mended all the same. Standard library only: it is started before there is an environment. Installing programs is
.ci/install's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO))

from tests.changed_labs import git_output, lab_of  # noqa: E402

REST = Path("build/rest.json")
"""Where `make build/rest.json` writes the tests that test-all has beyond test."""

AGAIN = "PYTEST_ARGS=--last-failed --last-failed-no-failures=none"
"""For `make`: what has failed, once more. Where nothing did, no test runs, which pytest ends with a code of its own."""

PASSED, UNSTEADY, FAILED, STOPPED = "passed", "unsteady", "failed", "stopped"
N_COMMITS = 30
"""How far back a commit's files are looked at."""

STOP_S = 60.0
"""How long a command that is over its time may take to end by itself."""

SECONDS = {
    "answers": 3500,
    "attacks": 1300,
    "browser": 130,
    "classroom": 650,
    "cluster": 60,
    "determinism": 140,
    "kernels": 240,
    "kills": 100,
    "notebooks": 800,
    "postgresql": 60,
    "ranks": 90,
    "triton": 240,
}
"""What each part takes on two cores, about: to know what still fits. A part that is not here is taken for UNKNOWN_S."""

UNKNOWN_S = 300
ROOMS = {
    "answers": (
        "grading/hidden",
        "labkit/capstone",
        "labkit/check",
        "labkit/clock",
        "labkit/compare",
        "labkit/exercises",
        "labkit/measures",
        "labkit/observe",
        "labkit/oracles",
        "labkit/pipeline",
        "labkit/plan",
        "labkit/spec",
        "labkit/troubles",
    ),
    "attacks": ("grading/isolation", "grading/rebuild", "grading/supervisor", "grading/verify", "grading/worker"),
    "browser": ("grading/build", "labkit/figures", "tests/browser"),
    "classroom": (
        "grading/board",
        "grading/feedback",
        "grading/intake",
        "grading/pages",
        "grading/report",
        "grading/similar",
        "grading/site",
    ),
    "cluster": ("grading/executors", "grading/log", "grading/pipeline"),
    "determinism": (
        "grading/executors",
        "grading/hidden",
        "grading/isolation",
        "grading/log",
        "grading/pipeline",
        "grading/rebuild",
        "grading/supervisor",
        "grading/verify",
        "grading/worker",
    ),
    "kernels": ("labkit/interpreter", "labkit/meters", "solutions/kernels", "benchmarks"),
    "kills": ("grading/executors", "grading/log", "grading/pipeline"),
    "postgresql": ("grading/gradebook",),
    "ranks": ("labkit/ranks",),
    "triton": ("labkit/interpreter", "labkit/meters"),
}
"""The folders whose change is a reason to run a part soon."""


@dataclass(frozen=True)
class Unit:
    """A piece of test-all that runs alone: a part, of one lab where its tests belong to labs.

    lab: such as "05", "none" for the tests of no lab, "" for the whole part. files: where its tests are.
    """

    part: str
    lab: str
    seconds: float
    files: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.part if self.lab in ("", "none") else f"{self.part} of lab {self.lab}"

    def command(self) -> list[str]:
        words = ["make", "test-all", f"PART={self.part}"]
        if self.lab:
            words += ["LANE=rest", f"LAB={self.lab}", f"FILES={' '.join(self.files)}"]
        return words


@dataclass
class Report:
    """What was run, in how many seconds, and how it ended; and what was not.

    UNSTEADY: tests failed that passed when they were tried again.
    """

    ran: list[tuple[str, float, str]] = field(default_factory=list)
    left_out: list[Unit] = field(default_factory=list)
    is_rest_known: bool = False

    @property
    def failed(self) -> bool:
        return any(outcome in (FAILED, STOPPED) for _, _, outcome in self.ran)

    def in_words(self) -> str:
        lines = [f".ci/run: {outcome:<8} {seconds / 60:5.1f} min  {name}" for name, seconds, outcome in self.ran]
        if self.left_out:
            lines.append(".ci/run: left out for lack of time: " + ", ".join(unit.name for unit in self.left_out))
        elif self.is_rest_known:
            lines.append(".ci/run: nothing was left out")
        else:
            lines.append(".ci/run: the rest of make test-all was not looked at")
        return "\n".join(lines)


def units_of(places: Iterable[dict[str, str]]) -> list[Unit]:
    """The pieces of these tests (as tests/selection.py writes them), and the oldest Triton's.

    A part's time is shared out by the number of tests.
    """
    n_of, files = Counter(), defaultdict(set)
    for each in places:
        key = each["part"], each["lab"] or "none"
        n_of[key] += 1
        files[key].add(each["test"].partition("::")[0])
    n_of_part = Counter()
    for (part, _), n in n_of.items():
        n_of_part[part] += n
    units = [
        Unit(part, lab, SECONDS.get(part, UNKNOWN_S) * n / n_of_part[part], tuple(sorted(files[part, lab])))
        for (part, lab), n in sorted(n_of.items())
    ]
    return [*units, Unit("triton", "", SECONDS["triton"])]


def in_order(units: Sequence[Unit], commits: Sequence[Sequence[str]]) -> list[Unit]:
    """The units that the latest of these commits touched first; of the same age, and untouched, the short ones first.

    commits: the paths that each has changed, the latest commit first.
    """

    def age(unit: Unit) -> int:
        touched = (n for n, paths in enumerate(commits) if any(_concerns(path, unit) for path in paths))
        return next(touched, len(commits))

    return sorted(units, key=lambda unit: (age(unit), unit.seconds, unit.name))


def _concerns(path: str, unit: Unit) -> bool:
    lab = lab_of(path)
    if lab:
        # Other labs' tests do not look at it.
        return lab == unit.lab
    in_room = any(path == room or path.startswith((f"{room}/", f"{room}.")) for room in ROOMS.get(unit.part, ()))
    return in_room or path in unit.files


def run_all(
    first: Sequence[tuple[str, list[str]]],
    rest: Callable[[], list[Unit]],
    left_s: Callable[[], float],
    run: Callable[[list[str], float], tuple[int | None, float]],
) -> Report:
    """Run what must run, then what fits of the rest.

    first: name and command of each. rest: called when those are done, for the units in their order; it may raise
    CalledProcessError. left_s: seconds until all must be over. run: a command, within these seconds; its exit code,
    None where it was stopped, and what it took.
    """
    report = Report()
    for name, command in first:
        outcome, seconds = run_twice(command, left_s, run)
        report.ran.append((name, seconds, outcome))
    if left_s() <= 0:
        return report
    try:
        units = rest()
    except subprocess.CalledProcessError:
        report.ran.append(("looking for what is left", 0.0, FAILED))
        return report
    report.is_rest_known = True
    for unit in units:
        if unit.seconds > left_s():
            report.left_out.append(unit)
            continue
        outcome, seconds = run_twice(unit.command(), left_s, run)
        if outcome == STOPPED:
            # It was begun because it was thought to fit: that is nobody's mistake.
            report.left_out.append(unit)
        else:
            report.ran.append((unit.name, seconds, outcome))
    return report


def run_twice(
    command: list[str], left_s: Callable[[], float], run: Callable[[list[str], float], tuple[int | None, float]]
) -> tuple[str, float]:
    """Run it, and what has failed of it once more; the outcome, and the seconds together."""
    code, seconds = run(command, left_s())
    if not code:
        return STOPPED if code is None else PASSED, seconds
    code, more_s = run([*command, AGAIN], left_s())
    # What there is no time left to try again has failed.
    return UNSTEADY if code == 0 else FAILED, seconds + more_s


def run_command(command: list[str], within_s: float) -> tuple[int | None, float]:
    """Run it from the repository's root; where it takes too long, end it with all that it started."""
    print(f".ci/run: {' '.join(command)}", flush=True)
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=REPO, start_new_session=True)
    try:
        code: int | None = process.wait(max(within_s, 0.0))
    except subprocess.TimeoutExpired:
        code = None
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.killpg(process.pid, number)
            try:
                process.wait(STOP_S)
                break
            except subprocess.TimeoutExpired:
                continue
    return code, time.monotonic() - begun


def last_commits(repo: Path = REPO, n: int = N_COMMITS) -> list[list[str]]:
    """The paths that each of the last commits has changed, the latest first; what is not committed before all."""
    mark = "commit:"
    log = git_output(repo, "log", f"-{n}", f"--format=tformat:{mark}", "--name-only", "-m", "--first-parent")
    commits = [block.split("\n") for block in log.split(mark)[1:]]
    commits.insert(0, git_output(repo, "diff", "--name-only", "HEAD").split("\n"))
    return [[path for path in paths if path] for paths in commits]


def rest_units() -> list[Unit]:
    """What test-all has beyond what has run, in the order of the last commits. Raises where it cannot be collected."""
    subprocess.run(["make", str(REST)], cwd=REPO, check=True)
    places = json.loads((REPO / REST).read_text())
    units = [unit for unit in units_of(places) if unit.part != "notebooks"]
    return in_order(units, last_commits())


def minutes(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes")
    return float(text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=".ci/run", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=minutes, default="75", help="for all of it together (default: 75)")
    parser.add_argument("--spent", type=float, default=0.0, help="seconds of them that are gone already")
    args = parser.parse_args(arguments)
    ends_at = time.monotonic() + 60 * args.minutes - args.spent
    first = [("make test", ["make", "test"]), ("notebooks", ["make", "test-all", "PART=notebooks"])]
    report = run_all(first, rest_units, lambda: ends_at - time.monotonic(), run_command)
    print(report.in_words())
    return 1 if report.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
