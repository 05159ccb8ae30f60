"""How the memory of a job's processes is looked at from outside."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import signal
import socket
import time
from collections.abc import Iterator

import pytest

from grading.worker import procfs
from grading.worker.procfs import LOOK_S, Memory, memory_of, pause_s, shared_mappings, together_bytes, waited_s
from labkit.spec import GiB, MiB

EVERYTHING = 2**62
"""More than any machine has, in bytes."""


@pytest.fixture
def child() -> Iterator[int]:
    """A process that holds 64 MiB and waits."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        held = b"x" * (64 * MiB)
        os.write(write, held[:1])
        while True:
            signal.pause()
    os.read(read, 1)
    yield pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(read)
    os.close(write)


def test_below_the_limit_nothing_is_stopped(child: int, monkeypatch) -> None:
    monkeypatch.setattr(procfs, "_proportional_bytes", lambda pid: pytest.fail("looked at exactly"))
    assert together_bytes([child], memory_of(os.getpid()), 16 * GiB) >= memory_of(child).resident_bytes >= 64 * MiB


def test_who_is_looked_at_exactly_stands_still_so_long(child: int, monkeypatch) -> None:
    exactly = procfs._proportional_bytes

    def looked(pid: int) -> int:
        # The signal arrives at once, but a process stops only where it comes by.
        _, status = os.waitpid(pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        return exactly(pid)

    monkeypatch.setattr(procfs, "_proportional_bytes", looked)
    # The 64 MiB are its own; what it has from this process counts by its share.
    most_bytes = (
        memory_of(child).resident_bytes + memory_of(child).tables_bytes + sum(shared_mappings([child]).values())
    )
    assert 64 * MiB <= together_bytes([child], Memory(), 0) <= most_bytes
    _, status = os.waitpid(child, os.WCONTINUED)
    assert os.WIFCONTINUED(status)


def test_who_hides_its_share_is_charged_with_all_of_it(child: int, monkeypatch) -> None:
    def refused(path: str) -> object:
        if path.endswith("smaps_rollup"):
            raise PermissionError
        return open(path)

    monkeypatch.setattr(procfs, "open", refused, raising=False)
    assert together_bytes([child], Memory(), 0) >= memory_of(child).resident_bytes


def test_what_was_swapped_out_counts(monkeypatch) -> None:
    told = {
        "status": "RssAnon:\t8 kB\nRssShmem:\t1 kB\nVmSwap:\t32 kB\n",
        "smaps_rollup": "Pss_Anon: 2 kB\nSwapPss: 5 kB\n",
    }
    monkeypatch.setattr(procfs, "open", lambda path: io.StringIO(told[path.split("/")[-1]]), raising=False)
    assert memory_of(1).resident_bytes == 41 * 1024
    assert procfs._proportional_bytes(1) == 7 * 1024


def test_what_waits_in_sockets_counts_though_they_are_closed(child: int) -> None:
    before_bytes = together_bytes([child], Memory(), EVERYTHING, [os.getpid()])
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")
        listener.listen(50)
        waiting_bytes = 0
        for _ in range(50):
            with socket.socket(socket.AF_UNIX) as sender, contextlib.suppress(BlockingIOError):
                sender.setblocking(False)
                sender.connect(listener.getsockname())
                while True:
                    waiting_bytes += sender.send(bytes(65536))
        grown_bytes = together_bytes([child], Memory(), EVERYTHING, [os.getpid()]) - before_bytes
    assert waiting_bytes > 5 * MiB and grown_bytes > waiting_bytes


def test_who_stands_in_line_for_a_processor_is_seen_to_wait() -> None:
    here = {min(os.sched_getaffinity(0))}
    pids = []
    for _ in range(3):
        pids.append(os.fork())
        if pids[-1] == 0:
            os.sched_setaffinity(0, here)
            while True:
                pass
    try:
        # As long as it takes, on a machine however busy.
        while min(map(waited_s, pids)) < 0.05:
            time.sleep(0.01)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert waited_s(pids[0]) == 0.0


def test_page_tables_count() -> None:
    with mmap.mmap(-1, GiB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ) as zeros:
        before = memory_of(os.getpid())
        assert not any(zeros[:: mmap.PAGESIZE])
        after = memory_of(os.getpid())
    # Nothing is resident, and eight bytes a page say so.
    assert after.resident_bytes - before.resident_bytes < 64 * MiB
    assert after.tables_bytes - before.tables_bytes >= GiB // mmap.PAGESIZE * 8


def test_who_is_gone_is_no_trouble() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert together_bytes([pid], Memory(), -1) == 0


def test_the_next_look_comes_before_what_is_left_could_be_filled(monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert pause_s(0.001, 4 * GiB) == LOOK_S
    assert pause_s(0.2, 4 * GiB) == 0.4
    assert pause_s(0.2, GiB) == 0.25
    assert pause_s(0.2, 0) == pause_s(0.2, -GiB) == LOOK_S
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    assert pause_s(0.2, 4 * GiB) == 0.125
