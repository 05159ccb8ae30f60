"""Bytes in use on the device and on the host, at every command, by the byte or in the blocks of a caching allocator.

Memory is in use from its allocation until the program drops its last reference: in the order of the host, which runs
ahead of the device. After `record_stream` it stays in use until the *host* finds that the other stream is done.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from labkit.simdevice.allocator import CachingAllocator
from labkit.simdevice.clock import Clock
from labkit.simdevice.commands import Command, Place


@dataclass
class _LedgerEntry:
    nbytes: int
    place: Place
    other_streams: set[int] = field(default_factory=set)
    until_s: float = 0.0
    ticket: int | None = None


class Ledger:
    """live_bytes and peak_bytes by place: "device", "pinned", "pageable", and "reserved" where there is an allocator.

    allocator: None where the machine hands out memory by the byte. Otherwise the clock gets its calls of the driver.
    """

    def __init__(self, clock: Clock) -> None:
        self.live_bytes: dict[str, int] = defaultdict(int)
        self.peak_bytes: dict[str, int] = defaultdict(int)
        self._clock = clock
        self._blocks: dict[int, _LedgerEntry] = {}
        self._lingering: list[_LedgerEntry] = []
        machine = clock.machine
        self.allocator: CachingAllocator | None = None
        if machine.caching_allocator:
            self.allocator = CachingAllocator(machine.memory_bytes, self._driver_called)

    def run(self, command: Command) -> None:
        """Take down one command, after the clock has run it."""
        if command.kind == "alloc":
            if command.block in self._blocks:
                raise ValueError(f"block {command.block} is allocated twice")
            self.settle()
            block = _LedgerEntry(command.nbytes, command.place)
            if self.allocator and command.place == "device":
                block.ticket = self.allocator.malloc(command.nbytes, command.stream)
                block.nbytes = self.allocator.size_of(block.ticket)
            self._blocks[command.block] = block
            self.live_bytes[command.place] += block.nbytes
            self._note_peak(command.place)
        elif command.kind == "use":
            self._blocks[command.block].other_streams.add(command.stream)
        elif command.kind == "free":
            block = self._blocks.pop(command.block)
            block.until_s = max((self._clock.done_s(stream) for stream in block.other_streams), default=0.0)
            self._lingering.append(block)
            self.settle()
        elif command.kind == "empty" and self.allocator:
            self.settle()
            self.allocator.empty_cache()

    def settle(self) -> None:
        """Give back what was freed and is not waited for any more."""
        over = [block for block in self._lingering if block.until_s <= self._clock.host_s]
        self._lingering = [block for block in self._lingering if block.until_s > self._clock.host_s]
        for block in over:
            self.live_bytes[block.place] -= block.nbytes
            if block.ticket is not None:
                self.allocator.free(block.ticket)

    def in_use_bytes(self) -> int:
        """Bytes of device memory in use now."""
        self.settle()
        return self.live_bytes["device"]

    def reset_peak(self) -> None:
        """Count the peak from here on."""
        self.settle()
        self.peak_bytes = defaultdict(int, self.live_bytes)

    def _note_peak(self, place: str) -> None:
        self.peak_bytes[place] = max(self.peak_bytes[place], self.live_bytes[place])

    def _driver_called(self, name: str) -> None:
        """A segment comes at once; one goes only after the device has done all that is queued."""
        machine, freed = self._clock.machine, name == "cudaFree"
        self._clock.call_driver(name, machine.free_s if freed else machine.malloc_s, device_first=freed)
        self.live_bytes["reserved"] = self.allocator.figures.reserved_bytes
        self._note_peak("reserved")
