"""Races: memory touched by two streams, or by a stream and the host, with nothing that orders the two.

Judged by order, not by time: a missing wait is reported even where the work happened to be done early enough. Each
stream and the host know up to which command every other stream is done; events, waits and synchronization pass that
on (vector clocks, as in torch.cuda._sanitizer). Values are computed in the order of the program, so a race never
shows in them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from labkit.simdevice.commands import ALL, Command
from labkit.simdevice.trace import HOST, Span

Known = dict[int, int]


@dataclass(frozen=True)
class Race:
    """`first` may still be under way when `second` touches the same memory.

    Race(
        "read too early", "copy to device on stream 1", "mm on the default stream",
        "mm on the default stream reads what copy to device on stream 1 may still write",
    )
    """

    kind: str
    first: str
    second: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Access:
    stream: int
    number: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} on the {Span(self.stream, '', 0, 0).lane}".replace("the stream", "stream")


@dataclass
class _BlockAccesses:
    place: str
    stream: int
    last_write: _Access
    reads: dict[int, _Access] = field(default_factory=dict)
    recorded: set[int] = field(default_factory=set)


class Races:
    """Takes the commands in order and collects the races in `found`."""

    def __init__(self) -> None:
        self.found: list[Race] = []
        self._number: dict[int, int] = defaultdict(int)
        self._known: dict[int, Known] = defaultdict(dict)
        self._events: dict[int, Known] = {}
        self._blocks: dict[int, _BlockAccesses] = {}
        self._freed: dict[int, list[_Access]] = defaultdict(list)

    def run(self, command: Command) -> None:
        """Take down one command."""
        if command.kind == "alloc":
            self._allocate(command)
        elif command.kind == "free":
            self._free(command)
        elif command.kind == "use":
            self._blocks[command.block].recorded.add(command.stream)
        elif command.kind in ("kernel", "copy"):
            self._number[command.stream] += 1
            self._learn(command.stream, self._known[HOST])
            self._touch(command, _Access(command.stream, self._number[command.stream], command.name))
            if command.blocking:
                self._learn(HOST, self._all_of(command.stream))
        elif command.kind == "host":
            self._touch(command, _Access(HOST, 0, command.name))
        elif command.kind == "record":
            self._events[command.event] = self._all_of(command.stream)
        elif command.kind == "wait":
            self._learn(command.stream, self._events.get(command.event, {}))
        elif command.kind == "empty":
            return  # memory in use stays where it is, and nobody learns anything
        elif command.event != ALL:
            self._learn(HOST, self._events.get(command.event, {}))
        else:
            for stream in list(self._number) if command.stream == ALL else [command.stream]:
                self._learn(HOST, self._all_of(stream))

    def run_in_graph(self, kernel: Command) -> None:
        """Take down a kernel of a replayed graph. Memory that is gone is nobody else's: `StaleInputs` reports it."""
        reads = tuple(block for block in kernel.reads if block in self._blocks)
        writes = tuple(block for block in kernel.writes if block in self._blocks)
        self.run(replace(kernel, reads=reads, writes=writes))

    def _all_of(self, stream: int) -> Known:
        return {**self._known[stream], stream: self._number[stream]}

    def _learn(self, who: int, known: Known) -> None:
        mine = self._known[who]
        for stream, number in known.items():
            mine[stream] = max(mine.get(stream, 0), number)

    def _ordered(self, earlier: _Access, who: int) -> bool:
        """Whether `earlier` is done before anything that `who` does from now on."""
        if earlier.stream in (who, HOST):
            return True
        return max(self._known[who].get(earlier.stream, 0), self._known[HOST].get(earlier.stream, 0)) >= earlier.number

    def _touch(self, command: Command, access: _Access) -> None:
        for number in command.reads:
            block = self._blocks[number]
            if not self._ordered(block.last_write, access.stream):
                self._report("read too early", block.last_write, access, "reads what", "may not have written yet")
            if access.stream != HOST:
                block.reads[access.stream] = access
        for number in command.writes:
            block = self._blocks[number]
            if not self._ordered(block.last_write, access.stream):
                self._report("written twice", block.last_write, access, "overwrites what", "may still be writing")
            for earlier in block.reads.values():
                if not self._ordered(earlier, access.stream):
                    self._report("overwritten too early", earlier, access, "overwrites what", "may still be reading")
            block.last_write, block.reads = access, {}

    def _allocate(self, command: Command) -> None:
        # Memory of the device is handed out again in the order of its stream: another stream must wait for that too.
        owner = _Access(command.stream, self._number[command.stream], "earlier work in this memory")
        on_device = command.place == "device"
        self._blocks[command.block] = _BlockAccesses(
            command.place, command.stream, owner if on_device else _Access(HOST, 0, "the allocation")
        )
        if on_device:
            for late in self._freed.pop(command.stream, []):
                if not self._ordered(late, command.stream):
                    text = f"memory is freed while {late} still needs it: let the stream that made it wait first"
                    self.found.append(Race("freed too early", str(late), "free", text))

    def _free(self, command: Command) -> None:
        block = self._blocks.pop(command.block)
        if block.place == "device":
            uses = [block.last_write, *block.reads.values()]
            self._freed[block.stream] += [
                use for use in uses if use.stream not in (block.stream, HOST, *block.recorded)
            ]

    def _report(self, kind: str, first: _Access, second: _Access, does: str, may: str) -> None:
        who = f"the host ({second.name})" if second.stream == HOST else str(second)
        remedy = "synchronize first" if second.stream == HOST else "make its stream wait for an event"
        self.found.append(Race(kind, str(first), who, f"{who} {does} {first} {may}: {remedy}"))
