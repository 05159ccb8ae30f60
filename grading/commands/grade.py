"""`grade DIR LAB`: grade every submission of a lab, and write the grades into nbgrader's gradebook.

First the jobs run, in parallel, and every result is stored as it comes; then one writer takes them to nbgrader. Both
halves skip what is already there, so an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch

from grading.commands.shared import progress_bar, say, table
from grading.gradebook.course import Course
from grading.gradebook.nbgrader import NbgraderFailed, expect_success, open_api
from grading.gradebook.outputs import JOB_KEY
from grading.gradebook.work import Graded, prepare, read_result, run_and_store
from grading.rebuild import Unreadable
from grading.supervisor.forkserver import InfrastructureFault

NOT_A_NAME = re.compile(r"[*?\[\]\x00-\x1f]")
"""Given to nbgrader, a student "a*" would stand for everybody whose name begins with an a."""
POOLS = 3
"""How often what met a fault of ours is tried, each time with new processes."""


@dataclass(frozen=True)
class Ungraded:
    """A submission without a grade, and why: "unreadable" is the student's to mend, "infrastructure" is ours."""

    student: str
    outcome: str
    reason: str


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    parser = subparsers.add_parser("grade", help="grade the submissions of a lab")
    parser.add_argument("folder", type=Path)
    parser.add_argument("lab", help='"02" or "02_float_formats"')
    parser.add_argument("--student", action="append", help="only this student (may be given again)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="submissions graded at a time")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    course = Course.at(args.folder)
    lab = course.lab(args.lab)
    students = args.student or course.students(lab)
    if not students:
        say(f"no submissions of {lab}: nothing is under {course.root / 'submitted'}/STUDENT/{lab}/")
        return 0
    ungraded = grade(course, lab, students, args.workers)
    print_summary(course, lab, students, ungraded)
    return 1 if ungraded else 0


def grade(course: Course, lab: str, students: list[str], workers: int) -> list[Ungraded]:
    """Grade these students' submissions; returns those that got no grade, with the reason."""
    ready, ungraded = {}, []
    course.key()
    for student in students:
        if NOT_A_NAME.search(student):
            ungraded.append(Ungraded(student, "unreadable", f"{student!r} is a pattern to nbgrader: rename the folder"))
            continue
        try:
            ready[student] = prepare(course, lab, lab, student)
        except Unreadable as error:
            ungraded.append(Ungraded(student, "unreadable", str(error)))
    ungraded += _run_jobs(list(ready.values()), workers)
    failed = {item.student for item in ungraded}
    ungraded += _write(course, lab, [work for student, work in ready.items() if student not in failed])
    store_ungraded(course, lab, students, ungraded)
    return ungraded


def _run_jobs(works: list[Graded], workers: int) -> list[Ungraded]:
    waiting = [work for work in works if read_result(work.stored) is None]
    faults: dict[str, Exception | None] = {}
    with progress_bar() as bar:
        task = bar.add_task("running", total=len(waiting))
        for _ in range(POOLS):
            if not waiting:
                break
            faults.update(_run_in_pool(waiting, workers, lambda: bar.advance(task)))
            # A full disk is full at the next try as well.
            waiting = [work for work in waiting if not isinstance(faults.get(work.job.student), OSError | None)]
    return [Ungraded(student, "infrastructure", str(error)) for student, error in faults.items() if error]


def _run_in_pool(works: list[Graded], workers: int, done: Callable[[], None]) -> dict[str, Exception | None]:
    """Run and store these jobs; returns by student the fault of ours, or None. A killed process costs no result."""
    faults: dict[str, Exception | None] = {}
    with _executor(min(workers, len(works))) as executor:
        futures = {executor.submit(run_and_store, work.job, work.stored): work for work in works}
        try:
            for future in as_completed(futures):
                student = futures[future].job.student
                faults[student] = None
                try:
                    future.result()
                    done()
                except (InfrastructureFault, BrokenExecutor, OSError) as error:
                    faults[student] = error
        except KeyboardInterrupt:
            executor.shutdown(wait=True, cancel_futures=True)
            raise
    return faults


def _executor(workers: int) -> Executor:
    # Spawned, not forked: this process has loaded torch and may have threads.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_settle_in)


def _settle_in() -> None:
    """Ctrl-C reaches every process of the terminal; the parent alone decides, and lets jobs in flight finish."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # There is a process for every core already.
    torch.set_num_threads(1)


def _write(course: Course, lab: str, works: list[Graded]) -> list[Ungraded]:
    faults = []
    api = open_api(course)
    with progress_bar() as bar:
        for work in bar.track(works, description="writing"):
            student = work.job.student
            if written_key(course, lab, student) == work.job.key:
                continue
            try:
                expect_success(course, api.autograde(lab, student, force=True, create=True))
            except NbgraderFailed as error:
                faults.append(Ungraded(student, "infrastructure", str(error)))
    return faults


def written_key(course: Course, lab: str, student: str) -> str | None:
    """The key of the job whose result is in the graded notebook; None where there is no graded notebook."""
    try:
        return json.loads(course.autograded(lab, student).read_text())["metadata"][JOB_KEY]["job"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store_ungraded(course: Course, lab: str, students: list[str], ungraded: list[Ungraded]) -> None:
    """Remember who got no grade and why, for the report; entries of other students stay."""
    path = course.root / ".grading" / f"ungraded-{lab}.json"
    kept = {name: entry for name, entry in read_ungraded(course, lab).items() if name not in students}
    kept.update({item.student: {"outcome": item.outcome, "reason": item.reason} for item in ungraded})
    path.write_text(json.dumps(kept, indent=1, sort_keys=True))


def read_ungraded(course: Course, lab: str) -> dict[str, dict[str, str]]:
    """Who got no grade at the last try: {student: {"outcome": ..., "reason": ...}}."""
    try:
        return json.loads((course.root / ".grading" / f"ungraded-{lab}.json").read_text())
    except (OSError, ValueError):
        return {}


def print_summary(course: Course, lab: str, students: list[str], ungraded: list[Ungraded]) -> None:
    without = {item.student: item for item in ungraded}
    rows = []
    for student in students:
        if student in without:
            rows.append((student, "", "", without[student].outcome))
            continue
        result = read_result(prepare(course, lab, lab, student).stored)
        outcomes = [item.outcome for item in result.exercises.values()]
        rows.append((student, outcomes.count("passed"), len(outcomes), _worst(outcomes)))
    say(table(("student", "passed", "exercises", "note"), rows))
    for item in ungraded:
        say(f"{item.student}: {item.reason}")


def _worst(outcomes: list[str]) -> str:
    return next((name for name in ("infrastructure", "suspected", "limit") if name in outcomes), "")
