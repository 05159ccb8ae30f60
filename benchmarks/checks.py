"""How long `check` keeps a student waiting: every exercise's public cases on its own solution.

The first answer of a fresh process counts apart, because that is what a student meets first. It does not time the
student's code for its own sake, and nothing is graded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

from grading.terminal import say, table
from labkit import exercises
from labkit.check.api import examine
from labkit.oracles import oracle_of
from tests.exercises.harness import answers_in, solution_of


def main(argv: list[str]) -> dict:
    """Time every exercise; prints a table and returns {exercise: {"first_s", "median_s", "slowest_s"}}."""
    parser = argparse.ArgumentParser(prog="benchmarks checks")
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args(argv).repeats
    result = {name: {"first_s": _first(name), **_again(name, repeats)} for name in exercises.everything()}
    rows = [(name, *(f"{seconds:.3f}" for seconds in found.values())) for name, found in result.items()]
    say(*table(("exercise", "first s", "median s", "slowest s"), rows))
    return result


def _again(exercise_id: str, repeats: int) -> dict[str, float]:
    _check(exercise_id)
    seconds = [_check(exercise_id) for _ in range(repeats)]
    return {"median_s": round(statistics.median(seconds), 4), "slowest_s": round(max(seconds), 4)}


def _first(exercise_id: str) -> float:
    """The first check of a process that has just imported labkit."""
    code = f"from benchmarks.checks import _check; print(_check({exercise_id!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return round(json.loads(done.stdout), 4)


def _check(exercise_id: str) -> float:
    source = solution_of(exercise_id)
    found = answers_in(exercise_id, source)
    start = time.perf_counter()
    verdict = examine(exercises.find(exercise_id), oracle_of(exercise_id), found, [source])
    seconds = time.perf_counter() - start
    if not verdict.passed:
        raise RuntimeError(f"the solution of {exercise_id} does not pass: {verdict.headline}")
    return seconds
