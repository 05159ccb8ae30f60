"""Serve a job's calls on a store: take what it asks for, enter it into the books, answer.

The files are in this process alone, so what a job knows of them it has asked for here. What makes no sense is a
WireError, which ends the exercise. Jobs are started and ended elsewhere.
"""

from __future__ import annotations

import time

import torch

from grading.worker.protocol.job import Observed
from grading.worker.protocol.store import CALLS, ListFiles, NotThere, Read, Rename, Stored, Write
from grading.worker.wire.frames import Channel
from grading.worker.wire.typed import Frame, WireError, frame_of
from labkit.spec import Tree
from labkit.store import Books, JobKilled
from labkit.store.store import is_name

MAX_CALLS = 50_000
"""How often the jobs of a case may call their store."""
LATE_S = 3.0
"""So long after its time what a job has sent already still counts: this machine may have stood still."""


class TooManyCalls(Exception):
    """The jobs of a case have called their store more often than they may."""


class StorePort:
    """The calls of a case's jobs, of which one runs at a time."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._n_calls = 0

    def serve(self, channel: Channel, deadline: float) -> Observed | None:
        """What came of the job that has just been given its case, or None where it has to be killed now.

        Raises TimeoutError at `deadline` (time.monotonic), WireError, TooManyCalls, and StoreFull.
        """
        while True:
            if time.monotonic() > deadline + LATE_S:
                raise TimeoutError
            frame = frame_of(*channel.receive(deadline), (*CALLS, Observed), "a call of the store")
            if isinstance(frame, Observed):
                return frame
            self._n_calls += 1
            if self._n_calls > MAX_CALLS:
                raise TooManyCalls(f"it called its store more than {MAX_CALLS:,} times")
            try:
                reply = self._reply(frame)
            except JobKilled:
                return None
            channel.post(reply, deadline)

    def _reply(self, call: Frame) -> Frame:
        try:
            return Stored(_BY_CALL[type(call)](self, call))
        except FileNotFoundError as error:
            return NotThere(str(error))

    def _write(self, call: Write) -> Tree:
        data = call.data
        if not isinstance(data, torch.Tensor) or data.dtype != torch.uint8 or data.dim() != 1:
            raise WireError("bytes that are none")
        self._books.write(_name(call.name), data.numpy().tobytes())
        return None

    def _rename(self, call: Rename) -> Tree:
        self._books.rename(_name(call.name), _name(call.to))
        return None

    def _read(self, call: Read) -> Tree:
        size = None if call.size is None else _number(call.size)
        data = self._books.read(_name(call.name), _number(call.start), size)
        return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)

    def _list(self, call: ListFiles) -> Tree:
        return self._books.list(_name(call.prefix) if call.prefix != "" else "")


_BY_CALL = {
    Write: StorePort._write,
    Rename: StorePort._rename,
    Read: StorePort._read,
    ListFiles: StorePort._list,
}


def _name(name: Tree) -> str:
    if not is_name(name):
        raise WireError("a name that no file can have")
    return name


def _number(value: Tree) -> int:
    if type(value) is not int or value < 0:
        raise WireError("a place that no file has")
    return value
