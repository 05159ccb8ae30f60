"""Real ranks from the cells of a notebook: functions of the cells, an interrupt, a restart of the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.ranks.real import gone

ROOT = Path(__file__).resolve().parents[2]

DEFINE = """
import os, torch
from labkit.ranks import run_ranks
scale = 10.0

class Summer:
    def __call__(self, comm):
        x = torch.tensor(scale * comm.rank)
        comm.all_reduce(x)
        return x.item()

def stuck(comm):
    print("pid", os.getpid())
    comm.recv(torch.zeros(1), 1 - comm.rank)
"""


def outputs(client, code: str, until: str | None = None) -> str:
    """All that a cell shows, up to its end or to the second time that `until` is among it."""
    number = client.execute(code)
    text = ""
    while until is None or text.count(until) < 2:
        message = client.get_iopub_msg(timeout=280)
        if message["parent_header"].get("msg_id") != number:
            continue
        content = message["content"]
        text += content.get("text", "") + "\n".join(content.get("traceback", ()))
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            break
    return text


def until_idle(client) -> None:
    """Wait until the cell that is running has ended."""
    while client.get_iopub_msg(timeout=280)["content"].get("execution_state") != "idle":
        pass


@pytest.mark.full("ranks")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_cells_an_interrupt_and_a_restart() -> None:
    pytest.importorskip("ipykernel")
    manager_of = pytest.importorskip("jupyter_client").KernelManager
    manager = manager_of()
    manager.start_kernel(cwd=str(ROOT), env={**os.environ, "PYTHONPATH": str(ROOT)})
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=280)
        outputs(client, DEFINE)
        assert outputs(client, "print(run_ranks(Summer(), 2, 'gloo'))") == "[10.0, 10.0]\n"

        raised = outputs(client, "def wrong(comm):\n    assert comm.rank == 0, 'no'\nrun_ranks(wrong, 2, 'gloo')")
        assert "rank 1 raised AssertionError: no" in raised and "[rank 1]     assert comm.rank == 0, 'no'" in raised

        hung = outputs(client, "run_ranks(stuck, 2, 'gloo', timeout_s=1)")
        assert "rank 0 waits for a message from rank 1, rank 1 waits for a message from rank 0" in hung
        assert "[rank 0]     comm.recv(torch.zeros(1), 1 - comm.rank)" in hung

        pids = [int(line.split()[-1]) for line in outputs(client, "run_ranks(stuck, 2, 'gloo')", "pid").splitlines()]
        manager.interrupt_kernel()
        until_idle(client)
        assert all(map(gone, pids)) and len(pids) == 2

        server = outputs(client, "from labkit.ranks.pool import shared_pool\nprint(shared_pool().server_pid)")
        pids = [int(line.split()[-1]) for line in outputs(client, "run_ranks(stuck, 2, 'gloo')", "pid").splitlines()]
        manager.restart_kernel(now=True)
        assert all(map(gone, [*pids, int(server.split()[-1])]))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
