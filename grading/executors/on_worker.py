"""What runs in the processes of a cluster's workers: say how they would grade, keep the unfit away, run a job.

A job arrives as bytes that only a fit worker opens, so that the scheduler needs neither torch nor the job's class.
The sandbox is the affair of the function that runs; what it needs on each host is in docs/cluster.md.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from distributed import Reschedule, Worker, WorkerPlugin, get_worker

from grading.executors.local import judge_modestly

Facts = Mapping[str, str]
"""How a process would grade, by name; the values are equal where the grades are."""


def facts() -> dict[str, str]:
    """How this process would grade: the versions, of which a difference is named first, and the digest that decides."""
    from grading.supervisor.job import grader_digest
    from grading.supervisor.packages import versions

    return {**versions(), "grader": grader_digest()}


@dataclass(frozen=True)
class Census:
    """What one worker says of itself. `isolation_trouble` is empty where its host can confine students' programs."""

    host: str
    n_threads: int
    facts: Facts
    isolation_trouble: str


def census(dask_worker: Worker, isolation: str | None = None) -> Census:
    """This worker's own account, with a trial of the isolation asked for (None tries none)."""
    trouble = _isolation_trouble(isolation) if isolation else ""
    return Census(socket.gethostname(), dask_worker.state.nthreads, facts(), trouble)


def _isolation_trouble(isolation: str) -> str:
    from grading.errors import UserError
    from grading.isolation import select_tier

    try:
        select_tier(isolation)
    except UserError as error:
        return str(error)
    return ""


def unfit(found: Census, expected: Facts) -> str:
    """Why this worker must not grade, or an empty string."""
    for name, value in expected.items():
        other = found.facts.get(name)
        if other != value and name == "grader":
            return "its checkout of the labs and the grader differs from this machine's"
        if other != value:
            return f"its {name} is {other}, this machine's is {value}"
    if found.n_threads != 1:
        return f"it runs {found.n_threads} jobs at a time in one process: start it with --nthreads 1"
    return found.isolation_trouble


class WorkerGate(WorkerPlugin):
    """Settles a worker in, and closes one that joins later and is unfit: it would take jobs only to hand them on."""

    def __init__(self, name: str, expected: Facts, isolation: str | None) -> None:
        self.name, self.expected, self.isolation = name, dict(expected), isolation

    def setup(self, worker: Worker) -> None:
        """Called by Dask in every worker of the cluster, and in each that joins."""
        reason = unfit(census(worker, self.isolation), self.expected)
        if reason:
            # Setting up is part of the worker's start, which must end before it can close.
            worker.loop.call_later(0, worker.close, nanny=True, reason=f"unfit to grade: {reason}")
            return
        judge_modestly()


def pack(function: Callable[..., object], args: tuple, kwargs: dict) -> bytes:
    """A call as bytes, for `run_packed`. The function goes by its name: workers have the same source."""
    return pickle.dumps((function, args, kwargs))


def run_packed(packed: bytes, grader: str, begun_topic: str) -> object:
    """Run a packed call in this worker, whose grader must be the one with this digest, and send word when it begins.

    Raises what the call raises; an InfrastructureFault names this host, and a UserError, which is advice for the
    person at this host, becomes one.
    """
    from grading.errors import UserError
    from grading.isolation.faults import InfrastructureFault

    if facts()["grader"] != grader:
        raise Reschedule
    worker = get_worker()
    worker.log_event(begun_topic, worker.get_current_task())
    function, args, kwargs = pickle.loads(packed)
    try:
        return function(*args, **kwargs)
    except InfrastructureFault as error:
        raise type(error)(_on_this_host(error)) from error
    except UserError as error:
        raise InfrastructureFault(_on_this_host(error)) from error


def _on_this_host(error: Exception) -> str:
    prefix = f"{socket.gethostname()}: "
    return f"{prefix}{str(error).removeprefix(prefix)}"
