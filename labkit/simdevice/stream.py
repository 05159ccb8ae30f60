"""Streams, with the methods of `torch.cuda.Stream`: queues of work that the device runs in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from labkit.simdevice.commands import Command
from labkit.simdevice.event import Event

if TYPE_CHECKING:
    from labkit.simdevice.device import SimDevice


class Stream:
    """One queue. Made by `sim.Stream()`; number 0 is the default stream."""

    def __init__(self, sim: SimDevice, number: int) -> None:
        self._sim = sim
        self.number = number
        self._before: list[Stream] = []

    def __enter__(self) -> Self:
        """`with stream:` is `with cuda.stream(stream):`."""
        self._before.append(self._sim.current_stream())
        self._sim.set_stream(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._sim.set_stream(self._before.pop())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event (a new one, if none is given) behind the work queued so far, and return it."""
        event = event or self._sim.Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let all work queued on this stream from now on wait for `event`. The host goes on at once."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let all work queued on this stream from now on wait for what is queued on `stream` now."""
        self.wait_event(stream.record_event())

    def synchronize(self) -> None:
        """Let the host wait until the work queued on this stream is done."""
        self._sim.issue(Command("sync", stream=self.number))

    def query(self) -> bool:
        """Whether the work queued on this stream is done, now, in the host's time."""
        clock = self._sim.clock
        return clock.done_s(self.number) <= clock.host_s

    def __repr__(self) -> str:
        return "<the default stream>" if self.number == 0 else f"<stream {self.number}>"
