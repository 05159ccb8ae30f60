"""What becomes of real ranks when their owner is interrupted or killed: a process of its own plays the notebook."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ranks.real import gone

ROOT = Path(__file__).resolve().parents[2]

OWNER = """
import os, signal, sys, time, torch
from labkit.ranks import run_ranks
from labkit.ranks.pool import shared_pool

# As in a notebook, also where these tests were started with the signal ignored, which is inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)

def stuck(comm):
    print(os.getpid())
    comm.barrier()
    print("all here")
    if {loops} and comm.rank:
        while True: pass
    comm.recv(torch.zeros(1), (comm.rank + 1) % 3)

run_ranks(lambda comm: None, 1, "gloo")
print("server", shared_pool().server_pid, flush=True)
try:
    run_ranks(stuck, 3, "gloo")
except KeyboardInterrupt:
    print("interrupted", run_ranks(lambda comm: comm.rank, 2, "gloo"), flush=True)
    time.sleep(600)
"""


def owner(loops: bool) -> tuple[subprocess.Popen, list[int]]:
    """A process with three ranks that hang, and the ids of the server and of the ranks."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", OWNER.format(loops=loops)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    pids = [int(process.stdout.readline().split()[1])]
    here = set()
    # What different ranks print arrives in any order.
    while len(pids) < 4 or len(here) < 3:
        line = process.stdout.readline()
        assert line, "the owner ended early"
        if line.endswith("all here\n"):
            here.add(line)
        elif line.split()[-1].isdigit():
            pids.append(int(line.split()[-1]))
    return process, pids


@pytest.mark.slow
@pytest.mark.parametrize("loops", [False, True])
def test_an_interrupt_ends_the_ranks_and_the_next_run_works(loops: bool) -> None:
    process, pids = owner(loops)
    try:
        # To the whole group, as Jupyter does it.
        os.killpg(process.pid, signal.SIGINT)
        line = process.stdout.readline()
        while line.startswith("[rank"):
            line = process.stdout.readline()
        assert line == "interrupted [0, 1]\n"
        assert all(map(gone, pids[1:])) and not process.poll()
    finally:
        process.kill()
        process.communicate()
    assert gone(pids[0])


@pytest.mark.full("ranks")
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("victim", ["owner", "server"])
def test_no_rank_outlives_its_owner_or_its_server(victim: str, loops: bool) -> None:
    process, pids = owner(loops)
    try:
        os.kill(process.pid if victim == "owner" else pids[0], signal.SIGKILL)
        # Without a server, the owner finds its ranks dead and ends as well.
        process.communicate(timeout=250)
        assert all(map(gone, pids))
    finally:
        process.kill()
        process.communicate()
