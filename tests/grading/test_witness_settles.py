"""A result that is still being freed when the next case begins is not what the notebook held: real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from grading.supervisor import witness
from grading.supervisor.witness import KEPT_BYTES, MemoryWitness
from labkit.spec import MiB

SEALED = "sealed: the check came so far"
HOLDS = """
import mmap, sys, time
input()
block = mmap.mmap(-1, {n_bytes}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block.write(bytes({n_bytes}))
print("holds", flush=True)
time.sleep({for_s})
block.close()
print("free", flush=True)
input()
"""


class OneProcess:
    """A sandbox with one process in its job, which is never sealed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def job_processes(self, rank: int) -> list[int]:
        return [self.pid]

    def seal_job(self, seal: object, rank: int) -> str:
        return SEALED


@contextmanager
def process_that_holds(n_bytes: int, for_s: float) -> Iterator[tuple[subprocess.Popen, MemoryWitness]]:
    """It holds n_bytes from now on, for so long, and a witness that has seen it before."""
    program = HOLDS.format(n_bytes=n_bytes, for_s=for_s)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        found = MemoryWitness(OneProcess(process.pid))
        found.take_baseline()
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "holds\n"
        try:
            yield process, found
        finally:
            process.kill()


def test_what_is_freed_soon_is_waited_for() -> None:
    with process_that_holds(2 * KEPT_BYTES, for_s=0.3) as (_, found):
        assert found.bound_memory(0, 64 * MiB) == SEALED


def test_what_stays_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(witness, "SETTLING_S", 0.3)
    with process_that_holds(2 * KEPT_BYTES, for_s=60) as (_, found):
        assert "the notebook already held" in found.bound_memory(0, 64 * MiB)
