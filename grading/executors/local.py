"""Processes of this machine: one for each job that runs at a time, kept from job to job.

They are forks of one process that has loaded what judging takes, and nothing else: it runs no job, starts no thread and
ends with this program. A process that ends takes the whole pool with it (BrokenProcessPool): nothing is tried again
here. What they leave in the temporary folder goes when the pool does, or this program and they, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.util import get_temp_dir
from pathlib import Path

from grading.errors import UserError
from grading.remains import holding, remove_at_the_end
from grading.worker.procfs import descendants
from labkit.forking import FORKED_FROM

JUDGE = "grading.supervisor.rounds"
"""The module that judges, with PyTorch, which takes seconds to load."""
JUDGE_BYTES = 6 * 2**30
LONGEST_FOLDER_BYTES = 107 - len("/listener-12345678")
"""The path of multiprocessing's folder: it makes a socket there, whose path may take 107 bytes (unix(7))."""


def start_loading() -> None:
    """Begin to load what judging takes, once for all pools that this program opens. Returns at once.

    Raises UserError where no socket fits into the temporary folder, and OSError.
    """
    folder = get_temp_dir()
    remove_at_the_end(folder)
    if (too_long_by := len(os.fsencode(folder)) - LONGEST_FOLDER_BYTES) > 0:
        raise UserError(
            f"the path of the folder for temporary files, {Path(folder).parent}, is {too_long_by} bytes too long for a "
            "socket in it",
            "set TMPDIR to a folder with a shorter path",
        )
    get_context("forkserver").set_forkserver_preload([JUDGE])
    before = {name: os.environ.get(name) for name in FORKED_FROM}
    os.environ.update(FORKED_FROM)
    # Inherited: Ctrl-C, which reaches it as well, must not end it while it loads.
    on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, on_interrupt)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def open_local(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of `workers` processes (at least one). See `open_executor` for how its futures end."""
    # A process that was killed removes nothing of its own.
    with tempfile.TemporaryDirectory(prefix="grading-pool-", ignore_cleanup_errors=True) as folder:
        start_loading()
        remove_at_the_end(folder)
        # Not forks of this process, which may have threads.
        context = get_context("forkserver")
        settling = (folder, holding())
        executor = ProcessPoolExecutor(max(1, workers), context, initializer=settle_in, initargs=settling)
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=True, cancel_futures=True)
            raise
        executor.shutdown(wait=True)


def settle_in(folder: str, held: Connection) -> None:
    """Make this process one of the pool's: it runs job after job beside others, and never decides when to stop.

    folder: the pool's own, for whatever is temporary. held: see `grading.remains`.
    """
    # Ctrl-C reaches every process of the terminal; the parent alone decides, and lets jobs in flight finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = folder
    end_with_parent(held)
    judge_modestly()


def end_with_parent(held: Connection) -> None:
    """See that this process ends when the program that opened the pool does, however that ends. `held` is held so long.

    A pool's process waits for work on a pipe that it holds open itself, so it would wait for ever.
    """

    def end_after_parent(held: Connection) -> None:
        parent_process().join()
        try:
            # A forking process that still loads would not hear of it yet, and make its folder anew.
            for pid in descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        finally:
            os._exit(1)

    threading.Thread(target=end_after_parent, args=(held,), daemon=True).start()


def judge_modestly() -> None:
    """Cap what judging in this process may take: JUDGE_BYTES of data, and one thread."""
    # Dask's scheduler imports this package and needs no torch.
    import torch

    # A result that takes this much to be judged ends its own job, not the machine.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (JUDGE_BYTES, most))
    # There is a process for every core already.
    torch.set_num_threads(1)
