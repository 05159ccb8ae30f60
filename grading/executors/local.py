"""Processes of this machine: one for each job that runs at a time, kept from job to job.

They are forks of one process that has loaded what judging takes, and nothing else: it runs no job, starts no thread and
ends with this program. A process that ends takes the whole pool with it (BrokenProcessPool): nothing is tried again
here. What they leave in the temporary folder goes when the pool does, or this program, however that ends; it stays only
where both are killed at once.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, get_context, parent_process
from multiprocessing.util import get_temp_dir

from grading.isolation.worker_tree import shared_worker_tree
from grading.worker.procfs import descendants
from labkit.forking import FORKED_FROM

JUDGE = "grading.supervisor.rounds"
"""The module that judges, with PyTorch, which takes seconds to load."""
JUDGE_BYTES = 6 * 2**30


def start_loading() -> None:
    """Begin to load what judging takes, once for all pools that this program opens. Returns at once; raises OSError."""
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
        # Not forks of this process, which may have threads.
        context = get_context("forkserver")
        folders = (folder, str(shared_worker_tree().parent), get_temp_dir())
        executor = ProcessPoolExecutor(max(1, workers), context, initializer=settle_in, initargs=folders)
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=True, cancel_futures=True)
            raise
        executor.shutdown(wait=True)


def settle_in(folder: str, *programs: str) -> None:
    """Make this process one of the pool's: it runs job after job beside others, and never decides when to stop.

    folder: the pool's own, for whatever is temporary. programs: folders of the program that opened the pool, which it
    removes itself where it comes to an end of its own.
    """
    # Ctrl-C reaches every process of the terminal; the parent alone decides, and lets jobs in flight finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = folder
    end_with_parent(folder, *programs)
    judge_modestly()


def end_with_parent(*folders: str) -> None:
    """See that this process ends when the program that opened the pool does, however that ends, and these folders too.

    A pool's process waits for work on a pipe that it holds open itself, so it would wait for ever.
    """

    def end_after_parent() -> None:
        parent_process().join()
        try:
            # A forking process that still loads would not hear of it yet, and make its folder anew.
            for pid in descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            # By another process, which is still there when this one writes no more.
            subprocess.Popen(["rm", "-rf", "--", *folders], stderr=subprocess.DEVNULL)
        finally:
            os._exit(1)

    threading.Thread(target=end_after_parent, daemon=True).start()


def judge_modestly() -> None:
    """Cap what judging in this process may take: JUDGE_BYTES of data, and one thread."""
    # Dask's scheduler imports this package and needs no torch.
    import torch

    # A result that takes this much to be judged ends its own job, not the machine.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (JUDGE_BYTES, most))
    # There is a process for every core already.
    torch.set_num_threads(1)
