"""The forking process: torch is loaded once here, and every submission starts as a fork of it.

It holds no secrets and never computes, so a fork is cheap and safe. Commands come as JSON datagrams on one descriptor,
with the job's own channel attached; what it knows goes back the same way. Whatever a job leaves behind is killed.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket

_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PDEATHSIG = 1


def main(control_fd: int) -> None:
    """Serve commands until the control channel closes."""
    os.set_inheritable(control_fd, False)
    control = socket.socket(fileno=control_fd)
    libc = ctypes.CDLL(None)
    # Orphans of a job become our children, so that none of them outlives it unseen.
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # Ctrl-C is the supervisor's to handle; it closes the control channel when it wants us gone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    gc.collect()
    gc.freeze()
    _tell(control, {"event": "ready"})
    leader = None
    while True:
        ready, _, _ = select.select([control, wake_read], [], [])
        if wake_read in ready:
            os.read(wake_read, 4096)
            leader = _reap(control, leader)
        if control in ready:
            data, descriptors, _, _ = socket.recv_fds(control, 65536, 1)
            if not data:
                _end(leader)
                return
            command = json.loads(data)
            if command["do"] == "start":
                leader = _start(control, descriptors[0], command["folder"])
            elif command["do"] == "kill":
                _end(leader)


def preload() -> None:
    """Everything that a lab imports. It must leave no thread behind.

    PyTorch loads its compiler at the first optimizer, which takes seconds: every fork would pay for it.
    """
    import matplotlib
    import torch
    import torch._dynamo

    matplotlib.use("Agg")
    import matplotlib.pyplot

    import grading.worker.job  # noqa: F401
    import labkit.figures  # noqa: F401
    from labkit import exercises

    torch.set_num_threads(1)
    exercises.everything()
    n_threads = len(os.listdir("/proc/self/task"))
    if n_threads != 1:
        raise RuntimeError(f"the forking process has {n_threads} threads after loading; a fork of it could hang")


def _start(control: socket.socket, channel_fd: int, folder: str) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            from grading.worker.job import run_job

            run_job(channel_fd, folder)
        finally:
            os._exit(0)
    os.close(channel_fd)
    _tell(control, {"event": "started", "pid": pid})
    return pid


def _end(leader: int | None) -> None:
    if leader is not None:
        for kill in (os.killpg, os.kill):
            try:
                kill(leader, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _reap(control: socket.socket, leader: int | None) -> int | None:
    """Collect the dead, and kill every child that is not the running job's first process."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            pid = 0
        if pid == leader and leader is not None:
            leader = None
            _kill_strays(None)
            _tell(control, {"event": "ended", "status": os.waitstatus_to_exitcode(status)})
        elif pid == 0:
            _kill_strays(leader)
            return leader


def _kill_strays(leader: int | None) -> None:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in map(int, file.read().split()):
            if pid != leader:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue


def _tell(control: socket.socket, event: dict) -> None:
    control.send(json.dumps(event).encode())
