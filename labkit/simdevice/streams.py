"""Streams and events, with the methods of `torch.cuda.Stream` and `torch.cuda.Event`.

A stream is a queue of work that the device runs in order; an event is a mark in one, that others can wait for.
"""

from __future__ import annotations

from typing import Self

from labkit.simdevice.commands import Command
from labkit.simdevice.state import DeviceState


class NotReady(RuntimeError):
    """A time was asked for that the device has not reached yet."""


class Stream:
    """One queue. Made by `sim.Stream()`; number 0 is the default stream."""

    def __init__(self, state: DeviceState, number: int) -> None:
        self._state = state
        self.number = number
        self._before: list[int] = []

    def __enter__(self) -> Self:
        """`with stream:` is `with cuda.stream(stream):`."""
        self._before.append(self._state.current_stream)
        self._state.current_stream = self.number
        return self

    def __exit__(self, *error: object) -> None:
        self._state.current_stream = self._before.pop()

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event (a new one, if none is given) behind the work queued so far, and return it."""
        event = event or Event(self._state)
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
        self._state.issue(Command("sync", stream=self.number))

    def query(self) -> bool:
        """Whether the work queued on this stream is done, now, in the host's time."""
        clock = self._state.timeline.clock
        return clock.done_s(self.number) <= clock.host_s

    def __repr__(self) -> str:
        return "<the default stream>" if self.number == 0 else f"<stream {self.number}>"


class Event:
    """One mark. Made by `sim.Event(enable_timing=False)`; only one made with `enable_timing=True` can tell times."""

    def __init__(self, state: DeviceState, enable_timing: bool = False) -> None:
        self._state = state
        self._number = state.new_event()
        self._enable_timing = enable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind the work queued so far on `stream`, by default the current one."""
        # A number of its own for each recording: a wait is for the recording that it has seen.
        self._number = self._state.new_event()
        self._state.issue(Command("record", stream=stream_number(self._state, stream), event=self._number))

    def wait(self, stream: Stream | None = None) -> None:
        """Let all work queued from now on on `stream`, by default the current one, wait for this event."""
        self._state.issue(Command("wait", stream=stream_number(self._state, stream), event=self._number))

    def synchronize(self) -> None:
        """Let the host wait until the event has happened."""
        self._state.issue(Command("sync", event=self._number))

    def query(self) -> bool:
        """Whether the event has happened, now, in the host's time. True if it was never recorded, as on CUDA."""
        clock = self._state.timeline.clock
        return (clock.event_s(self._number) or 0.0) <= clock.host_s

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`. Raises RuntimeError where there is no such time yet."""
        if not (self._enable_timing and end_event._enable_timing):
            raise RuntimeError("both events must be made with enable_timing=True")
        times_s = [self._state.timeline.clock.event_s(event._number) for event in (self, end_event)]
        if None in times_s:
            raise RuntimeError("both events must be recorded before the time between them can be asked")
        if not (self.query() and end_event.query()):
            raise NotReady("the device is not there yet (not ready): synchronize before you ask for the time")
        return (times_s[1] - times_s[0]) * 1e3


def stream_number(state: DeviceState, stream: Stream | None) -> int:
    """The number of a stream, of the current one if none is given. Raises TypeError for a stream of something else."""
    if stream is None:
        return state.current_stream
    if not isinstance(stream, Stream) or stream._state is not state:
        raise TypeError(f"{stream!r} is not a stream of this simulated device: make it with sim.Stream()")
    return stream.number
