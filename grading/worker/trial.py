"""Try, from inside a worker's confinement, what it is there to prevent, and tell what succeeded.

Run before any student's program, on targets that the supervisor has put up. An empty answer is a good one.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable

from grading.worker.confine import system


def run_trial(channel_fd: int, targets: dict) -> None:
    """Try everything and send {name: what happened} as JSON.

    targets: secret (a file's path), library (a folder's path), port and name (a TCP and an abstract Unix listener),
    pid and uid (the supervisor's).
    """
    tries: dict[str, Callable[[], object]] = {
        "read a file outside": lambda: os.open(targets["secret"], os.O_RDONLY),
        "write to the libraries": lambda: os.open(f"{targets['library']}/breach", os.O_WRONLY | os.O_CREAT),
        "reach the network": lambda: socket.create_connection(("127.0.0.1", targets["port"]), 1),
        "reach another program's socket": lambda: _connect_unix(f"\0{targets['name']}"),
        "signal the grader": lambda: os.kill(targets["pid"], 0),
        "make a namespace": lambda: system.unshare(system.CLONE_NEWUSER),
        "mark a folder that others read": lambda: os.utime("/dev", (1, 1)),
        "open a terminal that others count": lambda: os.open("/dev/ptmx", os.O_RDONLY | os.O_NOCTTY),
        "forget its memory record": lambda: os.open("/proc/self/clear_refs", os.O_WRONLY),
        "be the grader's user": lambda: _check(targets["uid"] == 0 and os.getuid() == 0),
        "keep a capability": lambda: _check(_status("CapEff") != "0" * 16),
        "gain privileges": lambda: _check(_status("NoNewPrivs") != "1"),
        "call without a filter": lambda: _check(_status("Seccomp") != "2"),
    }
    breaches = {}
    for name, attempt in tries.items():
        try:
            attempt()
            breaches[name] = "succeeded"
        except OSError:
            continue
    try:
        with open("own", "w") as file:
            file.write("own")
    except OSError as error:
        breaches["no temporary space"] = str(error)
    with socket.socket(fileno=channel_fd) as channel:
        channel.sendall(json.dumps(breaches).encode())


def _connect_unix(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(address)


def _check(breached: bool) -> None:
    if not breached:
        raise PermissionError


def _status(field: str) -> str:
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(f"{field}:"))
