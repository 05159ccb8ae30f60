"""A real Dask cluster on this machine: `dask scheduler` and `dask worker` as processes of their own.

Every process is ended with its children when the cluster closes. What runs on it is the tests' business.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
START_S = 180.0


class Cluster:
    """A scheduler, and workers added one by one. Use as a context manager."""

    def __init__(self, folder: Path, **settings: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.settings = folder, settings
        self.file = folder / "scheduler.json"
        self._started: list[subprocess.Popen] = []
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)
        )
        self.address = self._address()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._started:
            kill_tree(process.pid)
            process.wait()

    def add_worker(self, *options: str, source: Path = REPOSITORY) -> subprocess.Popen:
        """A worker with one thread and no nanny (unless told otherwise), on the grader in `source`."""
        words = options or ("--no-nanny", "--nthreads", "1")
        return self._start("worker", self.address, "--host", "127.0.0.1", "--no-dashboard", *words, source=source)

    def log(self, kind: str) -> str:
        """What the processes of this kind have said."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob(f"{kind}-*.log")))

    def _address(self) -> str:
        deadline = time.monotonic() + START_S
        while True:
            # The scheduler creates the file before it writes it.
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                return json.loads(self.file.read_text())["address"]
            if self.scheduler.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"the scheduler did not start: {self.log('scheduler')}")
            time.sleep(0.05)

    def _start(self, kind: str, *words: str, source: Path = REPOSITORY) -> subprocess.Popen:
        environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", **self.settings}
        with (self.folder / f"{kind}-{len(self._started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", kind, *words],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._started.append(process)
        return process


def kill_tree(pid: int) -> None:
    """Kill a process and all that it started; the parent first, so that it starts nothing anew."""
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        family = parent.children(recursive=True)
        for process in (parent, *family):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
