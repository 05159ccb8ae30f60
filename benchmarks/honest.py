"""Right answers on a busy machine: every one has to get full marks, however long its processes had to wait.

So many submissions of each lab, by turns our solutions and the unusual right answers of `tests/right`, half of them
on each tier, while other processes keep every core busy. An outcome that is not "passed" is told in full, and the
exit code is 1. Nothing is timed for its own sake.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks._meter import run_ours
from benchmarks._submissions import Class, make_course, right_class
from grading.course import Course
from grading.gradebook.setup import release
from grading.isolation.probe import try_tier
from grading.isolation.tiers import ISOLATING
from grading.supervisor import SubmissionResult

BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(10000))\n"
"""Ends by itself when this process is gone."""


def main(argv: list[str]) -> dict:
    """Grade them; returns the counts. Raises SystemExit(1) where one was not passed, and then writes no result."""
    parser = argparse.ArgumentParser(prog="benchmarks honest", description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=40, help="submissions of each lab, over all tiers")
    parser.add_argument("--labs", nargs="+", metavar="LAB", help="numbers of labs, as 00 08; all without it")
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1, help="processes that keep the machine busy")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(argv)
    counts: dict[str, dict[str, int]] = {}
    troubles: list[str] = []
    result: dict = {"submissions": 0, "busy_processes": args.busy, "workers": args.workers, "tiers": {}}
    with tempfile.TemporaryDirectory(prefix="grading-honest-") as folder, _busy(args.busy):
        course, first = make_course(Path(folder) / "course", "02")
        with contextlib.redirect_stdout(io.StringIO()):
            release(course, [lab for lab in course.labs() if lab != first])
        findings = {tier.name: try_tier(tier) for tier in ISOLATING}
        tiers = [name for name, finding in findings.items() if finding.works]
        result["tiers"] = {
            name: "works" if finding.works else f"not run: {finding.reason}" for name, finding in findings.items()
        }
        for lab in course.labs():
            if args.labs and lab[:2] not in args.labs:
                continue
            whole = right_class(course, lab, args.n)
            for i, tier in enumerate(tiers):
                # Neighbours are of two kinds, so pairs are dealt out.
                students = [student for n, student in enumerate(whole.students) if n // 2 % len(tiers) == i]
                graded = _graded(Path(folder) / f"{lab}-{tier}", whole, students, tier, args.workers)
                outcomes = Counter(found.outcome for one in graded for found in one.exercises.values())
                result["submissions"] += len(graded)
                counts[f"{lab} {tier}"] = dict(outcomes)
                troubles += [line for one in graded for line in _troubles(one)]
                print(f"{lab}, {tier}: {len(graded)} submissions, {dict(outcomes)}", flush=True)
        result["load_at_end"] = round(os.getloadavg()[0], 2)
    result["outcomes"] = counts
    if troubles or not tiers:
        print("\n".join(troubles or ["no tier works here"]), file=sys.stderr)
        raise SystemExit(1)
    return result


@contextlib.contextmanager
def _busy(n: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.DEVNULL) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _graded(root: Path, whole: Class, students: list[str], tier: str, workers: int) -> list[SubmissionResult]:
    """Every student's stored result; a submission without one is `run_ours`'s to complain of."""
    course: Course = whole.fill(root, students)
    run_ours(course, whole.lab, tier, workers)
    stored = sorted((root / ".grading" / "results" / whole.lab).glob("*.json"))
    return [SubmissionResult.from_json(json.loads(path.read_text())) for path in stored]


def _troubles(one: SubmissionResult) -> list[str]:
    found = [
        f"{one.lab}, {one.student}, {one.isolation}: {name} is {result.outcome}: {result.deciding.headline} "
        f"{result.deciding.rows}"
        for name, result in one.exercises.items()
        if result.outcome != "passed"
    ]
    return found + [f"{one.lab}, {one.student}, {one.isolation}: {note}" for note in one.notes]
