"""Runs a notebook in a kernel of its own, which ends with it.

nbclient does the work; here its waiting for replies is made safe. What a cell's output says is not looked at.
"""

from __future__ import annotations

import math
import queue
import time
from pathlib import Path

from jupyter_client import AsyncKernelClient, AsyncKernelManager
from jupyter_client.channels import AsyncZMQSocketChannel
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets import Type

LOOK_S = 0.5
APART = ["--log-level=ERROR", "--HistoryManager.enabled=False"]
"""Without a warning at each kernel's start that others on this machine may read along; and without the one database in
which all of a user's kernels write what was typed."""


class PatientChannel(AsyncZMQSocketChannel):
    """Looks for a message again and again: on a busy machine a waiting asyncio has missed ones that were there."""

    async def get_msg(self, timeout: float | None = None) -> dict:
        """The next message. Raises `queue.Empty` after `timeout` seconds."""
        ends_at = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return await super().get_msg(timeout=max(0.0, min(LOOK_S, ends_at - time.monotonic())))
            except queue.Empty:
                if time.monotonic() >= ends_at:
                    raise


class PatientClient(AsyncKernelClient):
    """A kernel's client whose replies are not missed."""

    shell_channel_class = Type(PatientChannel)
    iopub_channel_class = Type(PatientChannel)


def run_notebook(
    notebook: NotebookNode, folder: Path, cell_s: float, *, also_past_errors: bool = False
) -> NotebookNode:
    """The notebook as it has run in this folder; a cell that takes more than `cell_s` seconds is a failure.

    also_past_errors: what follows a cell that fails is run too. Raises nbclient's errors.
    """
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", client_factory=PatientClient),
        timeout=cell_s,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=APART,
        allow_errors=also_past_errors,
    )
    # Of a manager that it did not make itself, nbclient leaves the kernel running until the process ends.
    return client.execute(cleanup_kc=True)
