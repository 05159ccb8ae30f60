"""The virtual clock: when each command runs, by the machine's rates. No real time passes and none is read.

The device has one engine for kernels and one for each direction of the link. An engine runs one thing at a time, and
takes up what is ready in the order in which it was issued, filling gaps. Memory counts by what of it is in the cache.
"""

from __future__ import annotations

from collections import defaultdict

from labkit.busy_times import BusyTimes
from labkit.simdevice.cache import Cache
from labkit.simdevice.commands import ALL, Command
from labkit.simdevice.machine import Machine
from labkit.simdevice.trace import HOST, Span


class Clock:
    """The host's time, and when the work queued so far on each stream will be done. All in virtual seconds.

    spans: what the device did and what the host waited for; launches: when the host handed the work over, a
    whole graph at once.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.host_s = 0.0
        self.spans: list[Span] = []
        self.launches: list[Span] = []
        self._done_s: dict[int, float] = defaultdict(float)
        self._event_s: dict[int, float] = {}
        self._engines: dict[str, BusyTimes] = defaultdict(BusyTimes)
        self._cache = Cache(machine.cache_bytes)
        self._loaded: set[str] = set()
        self._n_kernels = 0

    def run(self, command: Command) -> None:
        """Let one command take its time."""
        cached_bytes = self._cache.run(command)
        if command.kind == "kernel":
            self._load(command.name)
            self._hand_over(command)
            self._queue_kernel(command, cached_bytes)
        elif command.kind == "copy":
            to_device = command.place == "device"
            kind = "to device" if to_device else "to host"
            self._hand_over(command)
            end_s = self._queue(command, kind, self.machine.copy_time_s(command.nbytes, to_device))
            if command.blocking:
                self._wait_until(end_s, command.name)
        elif command.kind == "record":
            self._event_s[command.event] = self.done_s(command.stream)
        elif command.kind == "wait":
            # As on CUDA, an event that was never recorded holds nobody up.
            event_s = self._event_s.get(command.event, 0.0)
            self._done_s[command.stream] = max(self._done_s[command.stream], event_s)
        elif command.kind == "sync":
            if command.event != ALL:
                self._wait_until(self._event_s.get(command.event, 0.0), command.name)
            else:
                self._wait_until(self.done_s(command.stream), command.name)
        elif command.kind == "capture":
            # The host prepares the launch as ever, and nothing is handed over.
            self._load(command.name)
            self.host_s += self.machine.launch_s
        elif command.kind == "replay":
            self._hand_over(command)

    def run_in_graph(self, kernel: Command) -> None:
        """Let a kernel of a replayed graph take its time, of which the host knows nothing."""
        self._queue_kernel(kernel, self._cache.run(kernel))

    def done_s(self, stream: int = ALL) -> float:
        """When the work queued so far on a stream (ALL: on any) will be done; the host's time if it is already."""
        if stream == ALL:
            return max([self.host_s, *self._done_s.values()])
        return max(self.host_s, self._done_s[stream])

    def event_s(self, event: int) -> float | None:
        """When a recorded event happens; None if it was not recorded."""
        return self._event_s.get(event)

    def call_driver(self, name: str, duration_s: float, device_first: bool) -> None:
        """Let the host spend this time in the driver; device_first: only after all work queued so far is done."""
        start_s = self.done_s() if device_first else self.host_s
        self._wait_until(start_s + duration_s, name)

    def _load(self, kernel: str) -> None:
        """The first launch of a kernel loads its code, while the host waits."""
        if kernel not in self._loaded:
            self._loaded.add(kernel)
            self._wait_until(self.host_s + self.machine.first_call_s, f"load {kernel}")

    def _hand_over(self, command: Command) -> None:
        before_s = self.host_s
        self.host_s += self.machine.launch_s
        self.launches.append(Span(HOST, command.name, before_s, self.host_s, "launch"))

    def _queue_kernel(self, command: Command, cached_bytes: int) -> None:
        duration_s = self.machine.kernel_time_s(command.flops, command.nbytes, cached_bytes, self._n_kernels)
        self._n_kernels += 1
        self._queue(command, "kernel", duration_s)

    def _queue(self, command: Command, kind: str, duration_s: float) -> float:
        start_s = self._engines[kind].place(self.done_s(command.stream), duration_s)
        end_s = self._done_s[command.stream] = start_s + duration_s
        self.spans.append(Span(command.stream, command.name, start_s, end_s, kind, command.nbytes))
        return end_s

    def _wait_until(self, end_s: float, name: str) -> None:
        if end_s > self.host_s:
            self.spans.append(Span(HOST, name or "synchronize", self.host_s, end_s, "host waits"))
            self.host_s = end_s
