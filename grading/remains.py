"""Temporary folders that are removed when this program and the processes of its pools have ended, however they end.

A shell waits for that, at the end of a pipe whose other end they hold. A folder that its maker removes in time is not
missed. Where that shell is killed as well, the folders stay.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from grading.errors import UserError

REMOVE = """
while IFS= read -r folder; do set -- "$@" "$folder"; done
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$@" && break; sleep 1; done
"""
"""More than once: a job without isolation may still write."""
_STARTING = threading.Lock()


def remove_at_the_end(folder: str | os.PathLike[str]) -> None:
    """Have this folder removed when this program is gone, and every process that holds what `holding` returns.

    Raises UserError where the path has a line break, and would be taken for two.
    """
    path = os.fsencode(folder)
    if b"\n" in path:
        raise UserError(
            f"the path of the folder for temporary files has a line break: {path!r}", "set TMPDIR to another"
        )
    with contextlib.suppress(BrokenPipeError):
        os.write(holding().fileno(), path + b"\n")


def holding() -> Connection:
    """What a process of a pool is given to keep, so that nothing is removed while it may still write there."""
    # Of two that were started, one would have nobody hold its pipe, and remove what is in use.
    with _STARTING:
        return _waiting()[1]


@functools.cache
def _waiting() -> tuple[subprocess.Popen, Connection]:
    read_end, held = Pipe(duplex=False)
    # In a session of its own: neither Ctrl-C nor a terminal that closes may end it.
    shell = subprocess.Popen(
        ["sh", "-c", REMOVE, "sh"], stdin=read_end.fileno(), stderr=subprocess.DEVNULL, start_new_session=True
    )
    read_end.close()
    return shell, held
