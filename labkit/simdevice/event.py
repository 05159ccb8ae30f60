"""Events, with the methods of `torch.cuda.Event`: marks in a stream that other streams and the host can wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.simdevice.commands import Command

if TYPE_CHECKING:
    from labkit.simdevice.device import SimDevice
    from labkit.simdevice.stream import Stream


class NotReady(RuntimeError):
    """A time was asked for that the device has not reached yet."""


class Event:
    """One mark. Made by `sim.Event(enable_timing=False)`; only one made with `enable_timing=True` can tell times."""

    def __init__(self, sim: SimDevice, number: int, enable_timing: bool) -> None:
        self._sim = sim
        self._number = number
        self._enable_timing = enable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind the work queued so far on `stream`, by default the current one."""
        # A number of its own for each recording: a wait is for the recording that it has seen.
        self._number = self._sim.new_number()
        self._sim.issue(Command("record", stream=self._sim.stream_or_current(stream).number, event=self._number))

    def wait(self, stream: Stream | None = None) -> None:
        """Let all work queued from now on on `stream`, by default the current one, wait for this event."""
        self._sim.issue(Command("wait", stream=self._sim.stream_or_current(stream).number, event=self._number))

    def synchronize(self) -> None:
        """Let the host wait until the event has happened."""
        self._sim.issue(Command("sync", event=self._number))

    def query(self) -> bool:
        """Whether the event has happened, now, in the host's time. True if it was never recorded, as on CUDA."""
        clock = self._sim.clock
        return (clock.event_s(self._number) or 0.0) <= clock.host_s

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`. Raises RuntimeError where there is no such time yet."""
        if not (self._enable_timing and end_event._enable_timing):
            raise RuntimeError("both events must be made with enable_timing=True")
        times_s = [self._sim.clock.event_s(event._number) for event in (self, end_event)]
        if None in times_s:
            raise RuntimeError("both events must be recorded before the time between them can be asked")
        if not (self.query() and end_event.query()):
            raise NotReady("the device is not there yet (not ready): synchronize before you ask for the time")
        return (times_s[1] - times_s[0]) * 1e3
