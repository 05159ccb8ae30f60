"""Run jobs on an executor with a bounded number in flight, so that a class of any size takes the same memory.

A job that met trouble among others is tried again alone: it need not be at fault. Results are handed on as they come;
nothing is stored here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass

from grading.executors import open_executor
from grading.submissions import Graded
from grading.supervisor.run import run

ALONE = 2
"""How often what met trouble among others is tried by itself."""

CLUSTER_WINDOW = 256
TICK_S = 0.2

Tell = Callable[[Graded, "dict | BaseException"], None]


@dataclass(frozen=True)
class Stream:
    """How jobs are run. tell: called once for each job, with its result or with what went wrong each time.

    tick is called a few times a second; while `stopped` says so, nothing new is begun.
    """

    workers: int
    cluster: str | None
    isolation: str
    tell: Tell
    tick: Callable[[], None]
    stopped: Callable[[], bool]

    @property
    def window(self) -> int:
        """How many jobs are in flight: enough that no process waits for the next."""
        return 2 * max(1, self.workers) + 1 if self.cluster is None else CLUSTER_WINDOW


def run_all(stream: Stream, works: Iterator[Graded]) -> None:
    """Run the jobs in about their order. Raises what `tell` raises, after what is in flight has ended."""
    # Each turn has an executor of its own: one that broke takes no more jobs. No job, no executor.
    for first in works:
        with open_executor(stream.workers, stream.cluster, stream.isolation) as executor:
            troubled = _run_until_trouble(stream, executor, itertools.chain([first], works))
        _run_alone(stream, troubled)


def _run_until_trouble(stream: Stream, executor: Executor, works: Iterator[Graded]) -> list[Graded]:
    """Until the works are at an end, or enough of them are in trouble; returns those."""
    flights: dict[Future, Graded] = {}
    troubled: list[Graded] = []
    is_broken = False
    while True:
        while not is_broken and len(flights) + len(troubled) < stream.window and not stream.stopped():
            work = next(works, None)
            if work is None:
                break
            try:
                flights[executor.submit(run, work.job, stream.isolation)] = work
            except BrokenExecutor:
                troubled.append(work)
                is_broken = True
        if stream.stopped():
            flights = {future: work for future, work in flights.items() if not future.cancel()}
        if not flights:
            return troubled
        for future in wait(flights, TICK_S, FIRST_COMPLETED).done:
            work, error = flights.pop(future), future.exception()
            if error is None:
                stream.tell(work, future.result())
            else:
                troubled.append(work)
                is_broken |= isinstance(error, BrokenExecutor)
        stream.tick()


def _run_alone(stream: Stream, troubled: list[Graded]) -> None:
    """One at a time, each up to ALONE times; an executor is kept until it breaks."""
    waiting = [(work, ALONE) for work in reversed(troubled)]
    while waiting and not stream.stopped():
        with open_executor(1, stream.cluster, stream.isolation) as executor:
            is_broken = False
            while waiting and not is_broken and not stream.stopped():
                work, left = waiting.pop()
                try:
                    future = executor.submit(run, work.job, stream.isolation)
                except BrokenExecutor:
                    # It broke while it was idle: this one has not been tried.
                    waiting.append((work, left))
                    break
                error, result = _awaited(stream, future)
                if error is None:
                    stream.tell(work, result)
                elif left > 1:
                    waiting.append((work, left - 1))
                else:
                    stream.tell(work, error)
                is_broken = isinstance(error, BrokenExecutor)


def _awaited(stream: Stream, future: Future) -> tuple[BaseException | None, dict | None]:
    """How one job ended: its error, or its result."""
    while not wait([future], TICK_S).done:
        stream.tick()
    error = future.exception()
    return error, None if error else future.result()
