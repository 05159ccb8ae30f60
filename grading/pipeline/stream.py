"""Run jobs on an executor with a bounded number in flight, so that a class of any size takes the same memory.

A job that met trouble among others is tried again alone: it need not be at fault. So is one that ran into a limit while
others may have kept the machine busy. Results are handed on as they come; nothing is stored here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass

from grading.executors import open_executor
from grading.isolation import Tier
from grading.isolation.worker_tree import shared_worker_tree
from grading.submissions import Prepared
from grading.supervisor.job import Job
from grading.supervisor.own_time import TookTooLong
from grading.supervisor.run import run_in_pool, run_on_host

ALONE = 2
"""How often what met trouble among others is tried by itself."""

CLUSTER_WINDOW = 256
TICK_S = 0.2

OnResult = Callable[[Prepared, "dict | BaseException"], None]


@dataclass(frozen=True)
class JobStream:
    """How jobs are run. tier: one that works here; None where each host of a cluster chooses, as `isolation` asks.

    on_result: called once for each job, with its result or with what went wrong each time.

    on_tick is called a few times a second; while `stopped` says so, nothing new is begun. owes_to_others: whether a
    result may be what it is because others ran at the same time.
    """

    workers: int
    cluster: str | None
    isolation: str
    tier: Tier | None
    on_result: OnResult
    on_tick: Callable[[], None]
    stopped: Callable[[], bool]
    owes_to_others: Callable[[dict], bool] = lambda result: False

    @property
    def has_company(self) -> bool:
        """Whether jobs run beside one another."""
        return self.workers > 1 or self.cluster is not None

    @property
    def window(self) -> int:
        """How many jobs are in flight: enough that no process waits for the next."""
        return 2 * max(1, self.workers) + 1 if self.cluster is None else CLUSTER_WINDOW

    def submit(self, executor: Executor, job: Job) -> Future:
        """Hand a job to the executor. Raises BrokenExecutor."""
        if self.tier is None:
            return executor.submit(run_on_host, job, self.isolation)
        # Tried once, and made once, for all processes of the pool.
        return executor.submit(run_in_pool, job, self.tier, shared_worker_tree())


def run_all(stream: JobStream, submissions: Iterator[Prepared]) -> None:
    """Run the jobs in about their order. Raises what `on_result` raises, after what is in flight has ended."""
    # Each turn has an executor of its own: one that broke takes no more jobs. No job, no executor.
    for first in submissions:
        with open_executor(stream.workers, stream.cluster, stream.isolation) as executor:
            troubled = _run_until_trouble(stream, executor, itertools.chain([first], submissions))
        _run_alone(stream, troubled)


def _run_until_trouble(stream: JobStream, executor: Executor, submissions: Iterator[Prepared]) -> list[Prepared]:
    """Until the submissions are at an end, or enough of them are in trouble; returns those."""
    flights: dict[Future, Prepared] = {}
    troubled: list[Prepared] = []
    is_broken = False
    while True:
        while not is_broken and len(flights) + len(troubled) < stream.window and not stream.stopped():
            prepared = next(submissions, None)
            if prepared is None:
                break
            try:
                flights[stream.submit(executor, prepared.job)] = prepared
            except BrokenExecutor:
                troubled.append(prepared)
                is_broken = True
        if stream.stopped():
            flights = {future: prepared for future, prepared in flights.items() if not future.cancel()}
        if not flights:
            return troubled
        for future in wait(flights, TICK_S, FIRST_COMPLETED).done:
            prepared, error = flights.pop(future), future.exception()
            if error is None:
                result = future.result()
                if stream.has_company and stream.owes_to_others(result):
                    troubled.append(prepared)
                else:
                    stream.on_result(prepared, result)
            elif isinstance(error, TookTooLong):
                stream.on_result(prepared, error)
            else:
                troubled.append(prepared)
                is_broken |= isinstance(error, BrokenExecutor)
        stream.on_tick()


def _run_alone(stream: JobStream, troubled: list[Prepared]) -> None:
    """One at a time, each up to ALONE times; an executor is kept until it breaks."""
    waiting = [(prepared, ALONE) for prepared in reversed(troubled)]
    while waiting and not stream.stopped():
        with open_executor(1, stream.cluster, stream.isolation) as executor:
            is_broken = False
            while waiting and not is_broken and not stream.stopped():
                prepared, left = waiting.pop()
                try:
                    future = stream.submit(executor, prepared.job)
                except BrokenExecutor:
                    # It broke while it was idle: this one has not been tried.
                    waiting.append((prepared, left))
                    break
                error, result = _awaited(stream, future)
                if error is None:
                    stream.on_result(prepared, result)
                elif left > 1 and not isinstance(error, TookTooLong):
                    waiting.append((prepared, left - 1))
                else:
                    stream.on_result(prepared, error)
                is_broken = isinstance(error, BrokenExecutor)


def _awaited(stream: JobStream, future: Future) -> tuple[BaseException | None, dict | None]:
    """How one job ended: its error, or its result."""
    while not wait([future], TICK_S).done:
        stream.on_tick()
    error = future.exception()
    return error, None if error else future.result()
