"""Processes of this machine: one for each job that runs at a time, kept from job to job.

A process that ends takes the whole pool with it (BrokenProcessPool): nothing is tried again here.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

JUDGE_BYTES = 6 * 2**30


@contextmanager
def open_local(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of `workers` processes (at least one). See `open_executor` for how its futures end."""
    # Spawned, not forked: this process has loaded torch and may have threads.
    executor = ProcessPoolExecutor(max(1, workers), mp_context=get_context("spawn"), initializer=settle_in)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=True, cancel_futures=True)
        raise
    executor.shutdown(wait=True)


def settle_in() -> None:
    """Make this process one of the pool's: it runs job after job beside others, and never decides when to stop."""
    # Ctrl-C reaches every process of the terminal; the parent alone decides, and lets jobs in flight finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    judge_modestly()


def end_with_parent() -> None:
    """See that this process ends when the one that started it does, however that ends.

    A pool's process waits for work on a pipe that it holds open itself, so it would wait for ever.
    """

    def watch() -> None:
        parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def judge_modestly() -> None:
    """Cap what judging in this process may take: JUDGE_BYTES of data, and one thread."""
    # Dask's scheduler imports this package and needs no torch.
    import torch

    # A result that takes this much to be judged ends its own job, not the machine.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (JUDGE_BYTES, most))
    # There is a process for every core already.
    torch.set_num_threads(1)
