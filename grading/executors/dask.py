"""A Dask cluster as an executor of grading jobs: workers that grade as this machine does, and one result per job.

Dask moves a job whose worker was lost to another worker. Starting a cluster, and its workers' sandboxes, are not
done here.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from concurrent.futures import wait as wait_for
from pathlib import Path

import distributed
from distributed import Client
from distributed.comm import connect

from grading.errors import UserError
from grading.executors.on_worker import Census, Facts, WorkerGate, census, facts, pack, run_packed, unfit

CONNECT_S = 20.0
FIRST_WORKER_S = 60.0
CLOSE_S = 10.0
SCHEDULER_GONE = "the cluster's scheduler is gone"
TALKATIVE = ("distributed.client", "distributed.core", "distributed.utils")


@contextlib.contextmanager
def open_dask(cluster: str, isolation: str | None = None) -> Iterator[Executor]:
    """An executor on the cluster at this scheduler address or scheduler file. See `open_executor`.

    Raises UserError where the scheduler does not answer, no worker has joined within FIRST_WORKER_S, or a worker
    would grade otherwise than this machine; then no job has run.
    """
    expected = facts()
    with _silenced(), _connected(cluster) as client:
        _check_workers(client, cluster, expected, isolation)
        gate = f"grading-gate-{uuid.uuid4().hex}"
        client.register_plugin(WorkerGate(gate, expected, isolation))
        executor = ClusterExecutor(client, expected["grader"])
        try:
            yield executor
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise
        else:
            executor.shutdown()
        finally:
            # A scheduler that is gone has forgotten it.
            if client.status == "running":
                with contextlib.suppress(OSError, TimeoutError):
                    client.unregister_worker_plugin(gate)


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Dask logs the traceback of each lost connection; here that is one sentence, in the error."""
    loggers = [logging.getLogger(name) for name in TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _connected(cluster: str) -> Iterator[Client]:
    address = _address_in(Path(cluster)) if Path(cluster).is_file() else cluster
    try:
        # A Client that fails to connect may hang the next one when it is collected: try without one.
        asyncio.run(_knock(address))
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        raise UserError(
            f"no Dask scheduler answers at {cluster} ({_first_line(error)})",
            "start one (dask scheduler), and give its address, like tcp://host:8786, or its scheduler file",
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=CLOSE_S)


async def _knock(address: str) -> None:
    security = distributed.Security().get_connection_args("client")
    comm = await connect(address, timeout=CONNECT_S, **security)
    await comm.close()


def _address_in(scheduler_file: Path) -> str:
    try:
        address = json.loads(scheduler_file.read_text())["address"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{scheduler_file} is no scheduler file of Dask",
            "the scheduler writes one: dask scheduler --scheduler-file",
        ) from error
    return str(address)


def _check_workers(client: Client, cluster: str, expected: Facts, isolation: str | None) -> None:
    try:
        client.wait_for_workers(1, timeout=FIRST_WORKER_S)
    except TimeoutError as error:
        raise UserError(
            f"the cluster at {cluster} has no workers, and none joined within {FIRST_WORKER_S:g} s",
            f"start some: dask worker {cluster} --nworkers 4 --nthreads 1 --no-dashboard",
        ) from error
    found = client.run(census, isolation=isolation, on_error="return")
    reasons = {address: _refusal(answer, expected) for address, answer in found.items()}
    refused = [f"{address}: {reason}" for address, reason in sorted(reasons.items()) if reason]
    if refused:
        raise UserError(
            "workers of the cluster are not fit to grade, and nothing was run:\n  " + "\n  ".join(refused) + "\n",
            "give them the same checkout and environment as this machine, restart them, and run this again",
        )


def _refusal(answer: Census | Exception, expected: Facts) -> str:
    if isinstance(answer, Exception):
        return f"the grader does not load there ({_first_line(answer)})"
    reason = unfit(answer, expected)
    return reason and f"(host {answer.host}) {reason}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


class ClusterExecutor(Executor):
    """Submits to a Dask client that somebody else opened and will close."""

    def __init__(self, client: Client, grader: str) -> None:
        self._client, self._grader, self._closed = client, grader, False
        self._lock = threading.Lock()
        self._futures: dict[str, Future] = {}
        # Dask forgets a job that nobody holds.
        self._remotes: dict[str, distributed.Future] = {}
        self._begun_topic = f"grading-begun-{uuid.uuid4().hex}"
        client.subscribe_topic(self._begun_topic, self._note_begun)

    def submit(self, function: Callable[..., object], /, *args: object, **kwargs: object) -> Future:
        """As every executor; raises BrokenExecutor where the scheduler is gone."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if self._client.status != "running":
            raise BrokenExecutor(SCHEDULER_GONE)
        key, future = f"grading-{uuid.uuid4().hex}", Future()
        call = (run_packed, pack(function, args, kwargs), self._grader, self._begun_topic)
        self._futures[key] = future
        self._remotes[key] = remote = self._client.submit(*call, key=key)
        future.add_done_callback(functools.partial(self._let_go, key))
        remote.add_done_callback(functools.partial(self._pass_on, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs. `cancel_futures` drops those that no worker has begun."""
        self._closed = True
        futures = list(self._futures.values())
        for future in futures if cancel_futures else ():
            future.cancel()
        if wait:
            wait_for(futures)

    def _note_begun(self, event: tuple[float, str]) -> None:
        """From here on, as in every executor, a future cannot be cancelled."""
        _, key = event
        with self._lock:
            future = self._futures.get(key)
            if future is not None and not future.running() and not future.done():
                future.set_running_or_notify_cancel()

    def _let_go(self, key: str, future: Future) -> None:
        del self._futures[key]
        remote = self._remotes.pop(key)
        if future.cancelled():
            remote.cancel()
            # Whoever waits for it is woken only by this.
            future.set_running_or_notify_cancel()

    def _pass_on(self, future: Future, remote: distributed.Future) -> None:
        """Hand what became of a job on the cluster to the future that its submitter holds."""
        with self._lock:
            if future.done() or not (future.running() or future.set_running_or_notify_cancel()):
                return
        try:
            result = remote.result()
        except BaseException as error:
            future.set_exception(_as_broken(error))
        else:
            future.set_result(result)


def _as_broken(error: BaseException) -> BaseException:
    if isinstance(error, distributed.KilledWorker):
        return BrokenExecutor(f"the workers that ran it were lost, {error.allowed_failures + 1} of them")
    if isinstance(error, distributed.CancelledError):
        return BrokenExecutor(SCHEDULER_GONE)
    return error
