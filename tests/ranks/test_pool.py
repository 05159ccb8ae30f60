"""The processes that real ranks are: quick to have, gone after a run, replaced when they die.

Functions are defined inside of the tests, as they are in a notebook: they travel to the ranks by value.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch

from labkit.ranks import (
    Comm,
    RankFailed,
    RanksHung,
)
from labkit.ranks.pool import Pool, environment, shared_pool
from tests.ranks.real import gloo, gone

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.mark.full("ranks")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell another process's CPU time")
def test_four_ranks_of_a_warm_pool_are_quick() -> None:
    def used_s() -> float:
        """CPU time of this process, of the server, and of the ranks that it has ended."""
        fields = Path(f"/proc/{shared_pool().server_pid}/stat").read_text().rpartition(")")[2].split()
        return time.process_time() + sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def once() -> float:
        began = used_s()
        gloo(lambda comm: comm.barrier(), 4)
        return used_s() - began

    def loading_s() -> float:
        began = os.times()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        ended = os.times()
        return ended.children_user - began.children_user + ended.children_system - began.children_system

    gloo(lambda comm: None, 1)
    # About a twentieth. Ranks that started from nothing would take four times as long as PyTorch takes to load. In CPU
    # time, because the machine may be busy, and beside one another, because it may be slow.
    assert min(once() for _ in range(10)) < loading_s() / 3


@pytest.mark.full("ranks")
def test_nothing_is_left_of_a_run(tmp_path) -> None:
    def fn(comm: Comm) -> list[int]:
        import subprocess

        child = subprocess.Popen(["sleep", "600"])
        (tmp_path / f"{comm.rank}").write_text(f"{os.getpid()} {child.pid}")
        comm.barrier()
        if how == "hangs" or (how == "fails" and comm.rank == 0):
            comm.recv(torch.zeros(1), 1 - comm.rank)
        assert how != "fails"

    for how, error in (("returns", None), ("fails", RankFailed), ("hangs", RanksHung)):
        if error is None:
            gloo(fn, 2)
        else:
            with pytest.raises(error):
                gloo(fn, 2, timeout_s=3)
        pids = [int(pid) for rank in "01" for pid in (tmp_path / rank).read_text().split()]
        assert len(pids) == 4 and all(map(gone, pids)), how


@pytest.mark.full("ranks")
def test_a_server_that_is_gone_is_replaced() -> None:
    gloo(lambda comm: None, 1)
    pid = shared_pool().server_pid
    os.kill(pid, signal.SIGKILL)
    shared_pool()._process.wait(10)
    assert gloo(lambda comm: comm.rank, 2) == [0, 1]
    assert shared_pool().server_pid != pid


@pytest.mark.full("ranks")
def test_a_server_that_hears_nothing_is_ended_with_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, (ours, theirs) = Pool(), Pipe()
    with ours, theirs, pool.ranks([theirs.fileno()]) as ranks:
        pids = [pool.server_pid, *ranks.pids]
        os.kill(pool.server_pid, signal.SIGSTOP)
        monkeypatch.setattr("labkit.ranks.pool.REPLY_S", 0.2)
        monkeypatch.setattr("labkit.ranks.pool.END_S", 0.2)
    assert all(map(gone, pids)) and len(pids) == 2 and pool.server_pid is None


@pytest.mark.full("ranks")
def test_a_closed_pool_leaves_nothing_and_starts_again() -> None:
    pool = Pool()
    pool.close()
    pids = []
    for _ in range(2):
        with pool.ranks([]):
            pids.append(pool.server_pid)
        pool.close()
        pool.close()
    assert len(set(pids)) == 2 and all(map(gone, pids))


@pytest.mark.slow
def test_the_process_that_ranks_are_forked_from_leaves_the_gpu_to_them() -> None:
    pretended = """
import torch
from torch import cuda

def initialized():
    raise SystemExit("CUDA was initialized, and no fork can use it")

torch._C._cuda_getDeviceCount = initialized
cuda._is_compiled, cuda._device_count_nvml = (lambda: True), (lambda: 1)

import importlib
from labkit.ranks.server import PRELOAD

for name in PRELOAD:
    importlib.import_module(name)
print(torch.cuda.is_available())
"""
    told = subprocess.run([sys.executable, "-c", pretended], env=environment(), capture_output=True, text=True)
    assert (told.stdout, told.stderr) == ("True\n", "")
