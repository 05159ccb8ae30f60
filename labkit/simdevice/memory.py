"""Bytes in use on the device and on the host, at every command, the way PyTorch's caching allocator counts them.

Memory is in use from its allocation until the program drops its last reference: in the order of the host, which runs
ahead of the device. After `record_stream` it stays in use until the *host* finds that the other stream is done.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from labkit.simdevice.clock import Clock
from labkit.simdevice.commands import Command, Place


@dataclass
class _Block:
    nbytes: int
    place: Place
    other_streams: set[int] = field(default_factory=set)
    until_s: float = 0.0


class Ledger:
    """live_bytes and peak_bytes by place ("device", "pinned", "pageable")."""

    def __init__(self, clock: Clock) -> None:
        self.live_bytes: dict[str, int] = defaultdict(int)
        self.peak_bytes: dict[str, int] = defaultdict(int)
        self._clock = clock
        self._blocks: dict[int, _Block] = {}
        self._lingering: list[_Block] = []

    def run(self, command: Command) -> None:
        """Take down one command, after the clock has run it."""
        if command.kind == "alloc":
            if command.block in self._blocks:
                raise ValueError(f"block {command.block} is allocated twice")
            self.settle()
            self._blocks[command.block] = _Block(command.nbytes, command.place)
            self.live_bytes[command.place] += command.nbytes
            self.peak_bytes[command.place] = max(self.peak_bytes[command.place], self.live_bytes[command.place])
        elif command.kind == "use":
            self._blocks[command.block].other_streams.add(command.stream)
        elif command.kind == "free":
            block = self._blocks.pop(command.block)
            block.until_s = max((self._clock.done_s(stream) for stream in block.other_streams), default=0.0)
            self._lingering.append(block)
            self.settle()

    def settle(self) -> None:
        """Give back what was freed and is not waited for any more."""
        over = [block for block in self._lingering if block.until_s <= self._clock.host_s]
        self._lingering = [block for block in self._lingering if block.until_s > self._clock.host_s]
        for block in over:
            self.live_bytes[block.place] -= block.nbytes

    def reset_peak(self) -> None:
        """Count the peak from here on."""
        self.settle()
        self.peak_bytes = defaultdict(int, self.live_bytes)
