"""The process that ranks are forked from: it has PyTorch loaded, has computed nothing, and has a single thread.

It forks and kills on request, and takes everything it forked with it when its owner is gone. What the ranks do and
whether they are done is the owner's business (`pool.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time

from labkit.ranks.process import be_rank

PRELOAD = ("torch.nn.parallel", "cloudpickle")
"""What ranks want beside what a rank's own module imports."""
LOOK_S = 1.0
REAP_S = 1.0
_MAX_RANKS = 250
_PR_SET_PDEATHSIG = 1


def main(control_fd: int) -> None:
    """Serve requests, one line of JSON each, until the owner closes the channel or ends."""
    os.set_inheritable(control_fd, False)
    control = socket.socket(fileno=control_fd)
    owner = os.getppid()
    # Ctrl-C is the owner's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOAD:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _send(control, {"ready": True})
    ranks: list[int] = []
    try:
        while os.getppid() == owner:
            ready, _, _ = select.select([control], [], [], LOOK_S)
            if not ready:
                continue
            try:
                data, descriptors, _, _ = socket.recv_fds(control, 65536, _MAX_RANKS)
            except ConnectionResetError:
                return
            if not data:
                return
            request = json.loads(data)
            if request["do"] == "start":
                ranks += [_fork(fd, control, descriptors) for fd in descriptors]
                for fd in descriptors:
                    os.close(fd)
                _send(control, {"pids": ranks})
            else:
                _send(control, {"ended": _end(ranks, set(request["dead"]))})
                ranks = []
                for name in request["load"]:
                    importlib.import_module(name)
    finally:
        _end(ranks, set())


def _fork(channel_fd: int, control: socket.socket, descriptors: list[int]) -> int:
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        return pid
    try:
        # A group of its own, so that what it starts can be ended with it.
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        control.close()
        for fd in descriptors:
            if fd != channel_fd:
                os.close(fd)
        be_rank(channel_fd)
    finally:
        os._exit(1)


def _end(ranks: list[int], dead: set[int]) -> dict[int, int]:
    """Kill what is left and collect all; by process id, how those in `dead` had ended by themselves."""
    statuses = {}
    deadline = time.monotonic() + REAP_S
    for pid in dead:
        found, status = os.waitpid(pid, os.WNOHANG)
        while not found and time.monotonic() < deadline:
            time.sleep(0.002)
            found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            statuses[pid] = os.waitstatus_to_exitcode(status)
    for pid in ranks:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    for pid in ranks:
        if pid not in statuses:
            os.waitpid(pid, 0)
    return statuses


def _send(control: socket.socket, what: dict) -> None:
    control.sendall(json.dumps(what).encode() + b"\n")
