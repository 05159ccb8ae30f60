"""Run the jobs of a class on a pool of processes, and store every result as it comes.

The pool is `concurrent.futures`; what it runs is `run_and_store`, so a result is never carried back to be lost here.
Writing grades is not done here.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import torch

from grading.commands.shared import progress_bar
from grading.gradebook.work import Graded, read_result, run_and_store
from grading.supervisor.conversation import LostUnderStudent
from grading.supervisor.forkserver import InfrastructureFault

JUDGE_BYTES = 6 * 2**30
ALONE = 2
"""How often what met trouble among others is tried by itself."""


@dataclass(frozen=True)
class Ungraded:
    """A submission without a grade, and why: "unreadable" is the student's to mend, "infrastructure" is ours."""

    student: str
    outcome: str
    reason: str


def run_jobs(works: list[Graded], workers: int) -> list[Ungraded]:
    """Run what has no result yet: all together first, then what met trouble one by one, in processes of its own."""
    waiting = [work for work in works if read_result(work.stored) is None]
    with progress_bar() as bar:
        task = bar.add_task("running", total=len(waiting))
        faults = _run_in_pool(waiting, workers, lambda: bar.advance(task))
        for work in waiting:
            for _ in range(ALONE):
                if not isinstance(faults.get(work.job.student), InfrastructureFault | BrokenExecutor):
                    break
                faults |= _run_in_pool([work], 1, lambda: bar.advance(task))
    return [_ungraded(student, error) for student, error in faults.items() if error]


def _ungraded(student: str, error: Exception) -> Ungraded:
    if isinstance(error, LostUnderStudent):
        return Ungraded(student, "suspected", f"each time it ran, the grader's own process was lost: {error}")
    if isinstance(error, BrokenExecutor):
        return Ungraded(student, "suspected", "each time it was graded, even alone, the process that grades ended")
    return Ungraded(student, "infrastructure", f"{type(error).__name__}: {error}")


def _run_in_pool(works: list[Graded], workers: int, done: Callable[[], None]) -> dict[str, Exception | None]:
    """Run and store these jobs; returns by student what went wrong on our side, or None."""
    faults: dict[str, Exception | None] = {}
    if not works:
        return faults
    with _executor(min(workers, len(works))) as executor:
        futures = {}
        try:
            for work in works:
                futures[executor.submit(run_and_store, work.job, work.stored)] = work.job.student
        except BrokenExecutor as error:
            faults = {work.job.student: error for work in works[len(futures) :]}
        try:
            for future in as_completed(futures):
                error = future.exception()
                faults[futures[future]] = error
                if error is None:
                    done()
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
    # A result that takes this much to be judged ends its own job, not the machine.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (JUDGE_BYTES, most))
    # There is a process for every core already.
    torch.set_num_threads(1)
