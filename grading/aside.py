"""Do a piece of work on a student's file in a child process with limits, so that what the file makes of it ends the
child alone, and never the run.

It is no box: the work is ours, and only what it works on is a student's.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import time
import warnings
from collections.abc import Callable
from select import select
from typing import BinaryIO, NoReturn, TypeVar

from grading.files import Unreadable

CPU_S = 20
"""The longest notebook that is allowed and honest takes a few seconds."""
WALL_S = 1200.0
"""Only a machine that stands still takes so long for CPU_S of work."""
MEMORY_BYTES = 2 * 2**30
"""Beyond what this process has already."""
MOST_BYTES = 64 * 2**20
"""Of what comes back."""

T = TypeVar("T")


def do_aside(name: str, work: Callable[..., T], *args: object) -> T:
    """What `work(*args)` returns, done in a child process of at most CPU_S and MEMORY_BYTES; what it raises is raised.

    name: the file that it is about. Raises Unreadable with that name where the child does not come to an end of its
    own, and OSError where no child can be made, or somebody else ended it.
    """
    reading, writing = os.pipe()
    try:
        child = os.fork()
    except BaseException:
        os.close(reading)
        os.close(writing)
        raise
    if child == 0:
        os.close(reading)
        _serve(writing, work, args)
    os.close(writing)
    status = None
    try:
        with open(reading, "rb", buffering=0) as answer:
            data = _received(answer)
        if data is not None:
            # It has closed its end, and is gone or about to go.
            _, status = os.waitpid(child, 0)
    finally:
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if data is None:
        raise TimeoutError(f"{name} was not read within {WALL_S:g} s: is this machine at a standstill?")
    ended_by = -os.waitstatus_to_exitcode(status)
    if ended_by == signal.SIGXCPU:
        raise Unreadable(f"{name} takes more than {CPU_S} s to be read: look at what is in it")
    if ended_by == signal.SIGKILL:
        # Nothing in a file does that: a person did, or the system, which had no memory left for anybody.
        raise ChildProcessError(f"what read {name} was ended from outside")
    try:
        is_done, result = pickle.loads(data)
    except Exception as error:
        # Nothing, or a part of it, or what no pickle can hold.
        raise Unreadable(f"{name} cannot be read: whatever reads it breaks off. Look at what is in it") from error
    if isinstance(result, MemoryError):
        raise Unreadable(f"{name} takes more than {MEMORY_BYTES:,} bytes of memory to be read: look at what is in it")
    if not is_done:
        raise result
    return result


def _received(answer: BinaryIO) -> bytes | None:
    """All that the child sends; None where it says nothing for too long."""
    chunks, until = [], time.monotonic() + WALL_S
    while True:
        if not select([answer], [], [], max(0.0, until - time.monotonic()))[0]:
            return None
        chunk = answer.read(2**20)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def _serve(writing: int, work: Callable, args: tuple) -> NoReturn:
    """Be the child: do the work and send what it returned or raised. Never returns to what the parent was at."""
    try:
        _settle_in(writing)
        try:
            answer = (True, work(*args))
        except Exception as error:
            answer = (False, error)
        data = pickle.dumps(answer)
        with open(writing, "wb") as file:
            file.write(data if len(data) <= MOST_BYTES else b"")
    finally:
        os._exit(0)


def _settle_in(writing: int) -> None:
    # A descriptor of the parent's may hold a lock, which would outlive a parent that is killed.
    os.closerange(3, writing)
    os.closerange(max(3, writing + 1), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    # Ctrl-C and its like are the parent's to hear: a child that they ended would look like a file that cannot be read.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    # To look for what could be freed would copy all memory that is still shared with the parent.
    gc.disable()
    # What Python remarks on a student's text is nothing for the instructor's terminal.
    warnings.simplefilter("ignore")
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_CPU, CPU_S)
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        _lower(resource.RLIMIT_DATA, int(file.read().split()[5]) * resource.getpagesize() + MEMORY_BYTES)


def _lower(what: int, limit: int) -> None:
    """Set a limit, unless there is a lower one already."""
    soft, hard = resource.getrlimit(what)
    known = [value for value in (limit, soft, hard) if value != resource.RLIM_INFINITY]
    resource.setrlimit(what, (min(known), hard))
