"""Runs of real ranks: on gloo, with the text of the error that they end with, and whether a process is gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from labkit.ranks import run_ranks


def gloo(fn, n: int, timeout_s: float = 60.0) -> list:
    return run_ranks(fn, n, "gloo", timeout_s)


def told(error: type[Exception], fn, n: int, timeout_s: float = 60.0, backend: str = "gloo") -> str:
    """The text of the error that this ends with, without its notes."""
    with pytest.raises(error) as caught:
        run_ranks(fn, n, backend, timeout_s)
    return str(caught.value)


def gone(pid: int) -> bool:
    """Whether a process has ended, or soon will have; what nobody has collected yet has ended, too."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False
