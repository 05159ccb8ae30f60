"""A job's end of a store that the supervisor keeps: every call goes there, and nothing of the store is here.

The other end is `grading.supervisor.store.port`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch.utils._python_dispatch import _disable_current_modes

from grading.worker.not_timed import not_timed
from grading.worker.protocol.job import RunCase
from grading.worker.protocol.store import ListFiles, NotThere, Read, Rename, Stored, Write
from grading.worker.wire.frames import Channel
from grading.worker.wire.typed import Frame
from labkit.observe import observe_job
from labkit.spec import Case, Exercise, Observation, Tree
from labkit.store import Store


def run_on_store(
    channel: Channel, exercise: Exercise, answers: SimpleNamespace, case: Case, sent: RunCase
) -> Observation:
    """Drive the answer as the job that `sent` names."""
    return observe_job(exercise, answers, case, sent.tree, KeptStore(channel), sent.job)


class KeptStore(Store):
    """Asks for everything, and waits for the answer; threads of the answer have their turns."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._one_at_a_time = threading.Lock()

    def _write(self, name: str, data: bytes) -> None:
        self._ask(lambda: Write(name, _tensor(data)))

    def _rename(self, old: str, new: str) -> None:
        self._ask(lambda: Rename(old, new))

    def _read(self, name: str, start: int, size: int | None) -> bytes:
        return self._ask(lambda: Read(name, start, size)).numpy().tobytes()

    def _list(self, prefix: str) -> list[str]:
        return self._ask(lambda: ListFiles(prefix))

    def _ask(self, call: Callable[[], Frame]) -> Tree:
        # No meter of the job's own operations sees what the channel does, nor does a frame's memory belong on the
        # device that a program has chosen for its tensors.
        with self._one_at_a_time, _disable_current_modes(), not_timed(), torch.device("cpu"):
            self._channel.post(call())
            reply = self._channel.expect((Stored, NotThere))
        if isinstance(reply, NotThere):
            raise FileNotFoundError(reply.text)
        return reply.value


def _tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
