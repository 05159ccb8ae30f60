"""The supervisor's hold on a forking process: start it, open jobs on it one at a time, kill them, end it.

Isolation belongs between the fork and the job's first line; this class does not add any.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from grading.supervisor.worker_tree import make_worker_tree, worker_command
from grading.worker.wire import Channel

START_S = 120.0
KILL_S = 10.0


class InfrastructureFault(Exception):
    """Something of ours failed, not the student's: to be retried, and never a reason for zero points."""


class Forkserver:
    """A forking process and at most one job on it. Use as a context manager."""

    def __init__(self, isolation: str = "none") -> None:
        self.isolation = isolation
        self._home = Path(tempfile.mkdtemp(prefix="grading-"))
        self.tree = make_worker_tree(self._home / "tree")
        # Datagrams keep a command and the descriptor that goes with it together.
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._errors = open(self._home / "stderr", "w+b")  # noqa: SIM115
        self._job_folder: Path | None = None
        self._running = False
        with theirs:
            self._process = subprocess.Popen(
                worker_command(self.tree, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=_environment(self._home),
                cwd=self._home,
                pass_fds=(theirs.fileno(),),
            )
        try:
            self._expect("ready", START_S)
        except InfrastructureFault:
            self.close()
            raise

    def __enter__(self) -> Forkserver:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def open_job(self) -> Channel:
        """Fork a fresh worker in an empty folder and return the channel to it. An earlier job is killed first."""
        self.kill_job()
        self._job_folder = Path(tempfile.mkdtemp(prefix="job-", dir=self._home))
        ours, theirs = socket.socketpair()
        with theirs:
            command = json.dumps({"do": "start", "folder": str(self._job_folder)}).encode()
            try:
                socket.send_fds(self._control, [command], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise InfrastructureFault(f"the forking process is gone: {error}") from error
        self._running = True
        self._expect("started", KILL_S)
        return Channel(ours)

    def kill_job(self) -> None:
        """End the running job and everything it started, and remove its folder."""
        if self._running:
            with contextlib.suppress(OSError):
                self._control.send(json.dumps({"do": "kill"}).encode())
            self._expect("ended", KILL_S)
            self._running = False
        if self._job_folder is not None:
            shutil.rmtree(self._job_folder, ignore_errors=True)
            self._job_folder = None

    def close(self) -> None:
        """End the forking process with all that it forked. Closing again does nothing."""
        if self._control.fileno() < 0:
            return
        with contextlib.suppress(InfrastructureFault):
            self.kill_job()
        self._control.close()
        try:
            self._process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def _expect(self, event: str, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while True:
            self._control.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._control.recv(65536)
            except TimeoutError:
                raise InfrastructureFault(f'the forking process did not say "{event}" in {within_s:g} s') from None
            except OSError as error:
                raise InfrastructureFault(f"the forking process is gone: {error}") from error
            if not data:
                raise InfrastructureFault(f"the forking process ended: {self._last_words()}")
            if json.loads(data)["event"] == event:
                return

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"


def _environment(home: Path) -> dict[str, str]:
    """A clean environment: one thread, the same hash seed, and none of the instructor's variables."""
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(home),
        "IPYTHONDIR": str(home / "ipython"),
    }
