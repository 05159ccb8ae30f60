"""asyncio in a job, which has no epoll and may have no sockets: it waits with poll, and what wakes it is a pipe.

IPython runs a cell with `await` on such a loop. No loop is made here.
"""

from __future__ import annotations

import os
import selectors
from asyncio import selector_events


class _End:
    """One end of a pipe, with those methods of a socket that an event loop's own pair is asked for."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)

    def fileno(self) -> int:
        return self._descriptor

    def recv(self, n_bytes: int) -> bytes:
        return os.read(self._descriptor, n_bytes)

    def send(self, data: bytes) -> int:
        return os.write(self._descriptor, data)

    def close(self) -> None:
        os.close(self._descriptor)


def do_without_sockets() -> None:
    """For every loop that this process makes from here on."""
    # Chosen before the job gave up its epoll.
    selectors.DefaultSelector = selectors.PollSelector
    selector_events.BaseSelectorEventLoop._make_self_pipe = _make_self_pipe


def _make_self_pipe(loop: selector_events.BaseSelectorEventLoop) -> None:
    """As asyncio's own, whose pair of sockets a job whose memory is watched may not make."""
    loop._ssock, loop._csock = map(_End, os.pipe())
    loop._internal_fds += 1
    loop._add_reader(loop._ssock.fileno(), loop._read_from_self)
