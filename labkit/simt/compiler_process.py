"""Compile in a process of its own, with limits on time and memory: a source may make the compiler work for ever.

Templates that instantiate one another, constants that take minutes to compute and expressions nested a million deep are
all valid C++. Here they end the compiler and not the notebook. A process with one thread, as the grader's worker is,
forks, which takes milliseconds; any other starts an interpreter, which takes 0.2 s.

What is compiled is neither looked at here nor explained.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence

from labkit.simt import nvrtc
from labkit.simt.nvrtc import Compiled

LIMIT_S = 30.0
CPU_LIMIT_S = 5.0
LIMIT_BYTES = 1 << 30
_OUT_OF_MEMORY = re.compile("catastrophic error: out of memory|Loop in catastrophic error processing")
"""What the compiler says if it still can; the second, where it needs memory to say the first."""


class CompilerStopped(Exception):
    """The compiler reached a limit or crashed; the text says which."""


def compile_apart(
    source: str,
    name: str,
    options: Sequence[str],
    cubin: bool = False,
    headers: Mapping[str, str] | None = None,
    limit_s: float = LIMIT_S,
    limit_bytes: int = LIMIT_BYTES,
    cpu_limit_s: float = CPU_LIMIT_S,
) -> Compiled:
    """As `nvrtc.compile_source`, but in another process. Raises `CompilerStopped`, `NvrtcMissing`.

    limit_s: of wall time, which a busy machine makes long. Windows has no other limits. limit_bytes: of memory, beyond
    what this process holds.
    """
    nvrtc.library()
    request = json.dumps([source, name, list(options), cubin, dict(headers or {}), cpu_limit_s, limit_bytes]).encode()
    exchange = _forked if _can_fork() else _started
    answer, code = exchange(request, limit_s)
    if answer is None:
        raise CompilerStopped(f"the compiler was stopped after {limit_s:g} s")
    head, _, body = answer.partition(b"\n")
    if code == 0 and head:
        kind, log = json.loads(head)
        if kind == "memory" or _OUT_OF_MEMORY.search(log):
            raise CompilerStopped(_too_much(limit_bytes))
        return Compiled(body if kind == "code" else None, log)
    if sys.platform != "win32" and code == -signal.SIGXCPU:
        raise CompilerStopped(f"the compiler was stopped after {cpu_limit_s:g} s of CPU time")
    # Out of memory, the compiler aborts or touches an address that is none.
    if code in (-signal.SIGABRT, -signal.SIGSEGV):
        raise CompilerStopped(f"{_too_much(limit_bytes)}, or is nested too deeply")
    raise CompilerStopped(f"the compiler ended without a result (exit code {code})")


def _too_much(limit_bytes: int) -> str:
    return f"compiling this source takes more than {limit_bytes >> 20:,} MiB of memory"


def _can_fork() -> bool:
    """A fork of a process with further threads may wait for a lock that one of them held."""
    if not sys.platform.startswith("linux") or threading.active_count() > 1:
        return False
    return len(os.listdir("/proc/self/task")) == 1


def _forked(request: bytes, limit_s: float) -> tuple[bytes | None, int]:
    """The answer of a fork, None where it took too long, and its exit code."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            # Handlers of this process, such as one that raises at a time limit, are not the compiler's.
            for number in (signal.SIGALRM, signal.SIGPROF, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            with open(writing, "wb", closefd=False) as file:
                file.write(nvrtc.answer_to(request))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    ended = False
    try:
        answer = _read(reading, time.monotonic() + limit_s)
        ended = answer is not None
    finally:
        os.close(reading)
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return answer, os.waitstatus_to_exitcode(status)


def _read(descriptor: int, deadline: float) -> bytes | None:
    """All that is written, None where the deadline comes first."""
    import select

    parts = []
    while True:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(max(deadline - time.monotonic(), 0) * 1e3):
            return None
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _started(request: bytes, limit_s: float) -> tuple[bytes | None, int]:
    """The same of an interpreter that runs this file."""
    # The file by itself: its package would load torch.
    command = [sys.executable, "-I", nvrtc.__file__]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with child:
        try:
            answer, _ = child.communicate(request, timeout=limit_s)
        except subprocess.TimeoutExpired:
            answer = None
        finally:
            child.kill()
    return answer, child.returncode
