"""The executor of this machine: how its futures end, what its processes are, and what an instructor is told."""

from __future__ import annotations

import functools
import operator
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import pytest

from grading.errors import UserError
from grading.executors import open_executor, start_loading
from grading.executors.local import JUDGE, JUDGE_BYTES
from grading.isolation.worker_tree import shared_worker_tree


@pytest.mark.slow
def test_jobs_run_in_other_processes_that_ignore_ctrl_c_and_are_capped() -> None:
    with open_executor(1) as executor:
        assert executor.submit(os.getpid).result() != os.getpid()
        assert executor.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
        assert executor.submit(resource.getrlimit, resource.RLIMIT_DATA).result()[0] == JUDGE_BYTES
        assert isinstance(executor.submit(operator.truediv, 1, 0).exception(), ZeroDivisionError)


@pytest.mark.slow
def test_a_process_that_ends_breaks_the_executor_and_the_next_one_works() -> None:
    with open_executor(1) as executor:
        assert isinstance(executor.submit(os._exit, 3).exception(), BrokenExecutor)
        with pytest.raises(BrokenExecutor):
            executor.submit(os.getpid)
    with open_executor(0) as executor:
        assert executor.submit(operator.add, 1, 2).result() == 3


@pytest.mark.full("kills")
@pytest.mark.parametrize("ends", [os.getpid, functools.partial(os._exit, 3)])
def test_what_is_temporary_goes_with_the_pool_however_that_ends(tmp_path, monkeypatch, ends) -> None:
    # The program's own, for all of its pools.
    shared_worker_tree()
    start_loading()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_executor(2) as executor:
        made = {Path(executor.submit(tempfile.mkdtemp).result()) for _ in range(4)}
        assert all(path.is_relative_to(tmp_path) and path.is_dir() for path in made)
        executor.submit(ends).exception()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interruption_waits_for_what_runs_and_drops_the_rest() -> None:
    futures = []
    with pytest.raises(KeyboardInterrupt), open_executor(1) as executor:
        futures = [executor.submit(time.sleep, 1.0) for _ in range(8)]
        while not futures[0].running():
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert futures[0].result() is None
    assert futures[-1].cancelled()


def test_a_cluster_without_dask_is_refused_with_the_way_to_get_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name in ("grading.executors.dask", "grading.executors.on_worker"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with (
        pytest.raises(UserError, match=r"needs Dask.*make setup, or pip install -e '.\[cluster\]'"),
        open_executor(1, "tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.slow
def test_what_judging_takes_is_loaded_once_for_all_processes() -> None:
    with open_executor(2) as executor:
        both = [executor.submit(time.sleep, 1.0) for _ in range(2)]
        processes = {executor.submit(os.getpid).result(): executor.submit(os.getppid).result() for _ in both}
        (loader,) = set(processes.values())
        loaded = executor.submit(eval, f"'{JUDGE}' in __import__('sys').modules").result()
    assert loader != os.getpid() and "multiprocessing.forkserver" in Path(f"/proc/{loader}/cmdline").read_text()
    assert loaded


@pytest.mark.slow
def test_a_process_of_the_pool_loads_nothing_of_nbgraders() -> None:
    """Which takes two seconds of every start."""
    look = "sorted({'nbgrader', 'nbformat', 'jsonschema'} & set(sys.modules))"
    code = f"import sys, {JUDGE}, grading.supervisor.run, grading.executors.local; print({look})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["[]"]
