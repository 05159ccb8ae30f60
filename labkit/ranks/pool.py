"""The owner's hold on the process that ranks are forked from: started once, warm from then on, gone with its owner.

A fork of it is a rank with everything loaded, some milliseconds later. It serves one run at a time and knows nothing
of what the ranks do.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from labkit.forking import FORKED_FROM

REPLY_S = 120.0
"""So long an answer may take: the server may have libraries to load first, and the machine much else to do."""
END_S = 30.0


class Pool:
    """A warm server, started at the first use and anew whenever it is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen | None = None

    @property
    def server_pid(self) -> int | None:
        """The process id of the server, if there is one."""
        return self._process.pid if self._process else None

    @contextmanager
    def ranks(self, channel_fds: Sequence[int]) -> Iterator[Ranks]:
        """Fork a rank for each channel; after the block all of them are gone, however it ends."""
        with self._lock:
            try:
                self._start()
                pids = self._ask({"do": "start"}, channel_fds)["pids"]
            except BaseException:
                # What it had begun is unknown, so all of it goes.
                self.close()
                raise
            ranks = Ranks(self, pids)
            try:
                yield ranks
            finally:
                ranks.end(())

    def close(self) -> None:
        """End the server and every rank that it forked."""
        if self._control is not None:
            # It ends its ranks when the channel closes, and itself.
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                # It is loading something. Its ranks end with it, however it ends.
                self._process.kill()
                self._process.wait()
            except BaseException:
                self._process.kill()
                self._process.wait()
                raise
            finally:
                self._process = None

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair()
        with theirs:
            self._control = ours
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from labkit.ranks.server import main; main({theirs.fileno()})"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment(),
                pass_fds=(theirs.fileno(),),
                # An interrupt of the notebook goes to the kernel's whole group; this one is told by its owner.
                start_new_session=True,
            )
        self._reply()

    def _ask(self, request: dict, fds: Sequence[int] = ()) -> dict:
        socket.send_fds(self._control, [json.dumps(request).encode()], fds)
        return self._reply()

    def _reply(self) -> dict:
        self._control.settimeout(REPLY_S)
        data = b""
        while not data.endswith(b"\n"):
            part = self._control.recv(65536)
            if not part:
                raise RuntimeError("the process that ranks are forked from has ended; its reason is on standard error")
            data += part
        return json.loads(data)


class Ranks:
    """The processes of one run, by rank."""

    def __init__(self, pool: Pool, pids: list[int]) -> None:
        self._pool = pool
        self.pids = pids
        self.load: set[str] = set()
        """Modules that the server should load for the runs to come."""
        self._ended: dict[int, int] | None = None

    def end(self, dead: Sequence[int]) -> dict[int, int]:
        """Kill all. By rank, for those in `dead` that had ended by themselves: exit code, or minus the signal."""
        if self._ended is None:
            self._ended = {}
            try:
                statuses = self._pool._ask(
                    {"do": "end", "dead": [self.pids[rank] for rank in dead], "load": [*self.load]}
                )["ended"]
            except (OSError, RuntimeError):
                self._pool.close()
                return {}
            except BaseException:
                self._pool.close()
                raise
            self._ended = {self.pids.index(int(pid)): status for pid, status in statuses.items()}
        return self._ended


def shared_pool() -> Pool:
    """The one pool of this process; a fork of the process gets its own."""
    return _pool_of(os.getpid())


@cache
def _pool_of(pid: int) -> Pool:
    return Pool()


def environment() -> dict[str, str]:
    """Ours, with one thread (more would stay behind in no fork), and gloo kept inside of this machine."""
    known = os.environ | FORKED_FROM
    known["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    known["OMP_NUM_THREADS"] = known["MKL_NUM_THREADS"] = "1"
    with contextlib.suppress(OSError):
        names = [name for _, name in socket.if_nameindex()]
        loopback = next((name for name in ("lo", "lo0") if name in names), None)
        if loopback:
            known.setdefault("GLOO_SOCKET_IFNAME", loopback)
    return known
