"""Grade in the process that runs the tests, on sandboxes that it keeps from test to test.

A pool starts a process and loads PyTorch, and each of its processes a sandbox of its own: 12 s of CPU time for every
call of `grade`. What a pool's processes do for a job is `grading.supervisor.run.run`, and that runs here as well. Tests
of pools, of faults, and of programs that nothing confines want the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager

import pytest

import grading.pipeline.stream as streams
from grading.isolation.worker_tree import shared_worker_tree


class InProcess(Executor):
    """Each job runs when it is handed in; a future is always done."""

    def submit(self, function: Callable, /, *args: object, **options: object) -> Future:
        future: Future = Future()
        try:
            future.set_result(function(*args, **options))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def open_in_process(_workers: int, cluster: str | None = None, _isolation: str | None = None) -> Iterator[Executor]:
    assert cluster is None, "a cluster is no process of this machine"
    yield InProcess()


@contextmanager
def graded_in_process() -> Iterator[None]:
    """Within the block, `grade` starts no pool."""
    # Made before a test moves the folder for temporary files, which is gone when that test is.
    shared_worker_tree()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "open_executor", open_in_process)
        yield
