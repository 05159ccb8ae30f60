"""What a program asked of a device, one command after the other, as the host issued them.

Times, bytes and races all follow from this list and the machine, so whoever has the list can work them out again.
Nothing is worked out here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Kind = Literal[
    "alloc",  # block, nbytes, place, stream: the stream that the memory belongs to
    "free",  # block: nothing in the program refers to it any more
    "use",  # block, stream: record_stream
    "empty",  # empty_cache: the allocator gives back to the driver what nobody uses
    "kernel",  # stream, name, reads, writes, flops, nbytes
    "copy",  # stream, name, reads, writes, nbytes, place: where it goes; blocking: the host waits for it
    "record",  # event, stream
    "wait",  # event, stream: what the stream does from now on waits for the event
    "sync",  # the host waits for: event, else stream, else (stream -1) the whole device
    "host",  # name, reads, writes: an operation of the host
    "capture",  # graph, and as a kernel: captured into that graph, and not run
    "replay",  # graph, stream, name: all kernels that were captured into that graph run, in order, after one launch
]
KINDS = get_args(Kind)
Place = Literal["device", "pinned", "pageable"]
PLACES = get_args(Place)
ALL = -1
MAX_COMMANDS = 10_000
MAX_MENTIONS = 100_000
"""Of memory, in all commands together."""
MAX_STREAMS = 64
"""What the exercises of the course take is below a tenth of these. Working out a list takes more than its length."""


@dataclass(frozen=True)
class Command:
    """One command. Which fields count depends on `kind`; blocks are storages by number, streams and events too.

    Command("kernel", "mm", stream=0, nbytes=12288, flops=65536, reads=(1, 2), writes=(3,))

    graph: of an allocation, the graph whose capture asked for the memory.
    """

    kind: Kind
    name: str = ""
    stream: int = 0
    block: int = ALL
    event: int = ALL
    graph: int = ALL
    nbytes: int = 0
    flops: int = 0
    place: Place = "device"
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    blocking: bool = False


_DEFAULTS = {field.name: field.default for field in fields(Command)}
_TYPES = {"kind": str, "name": str, "place": str, "blocking": bool}


def as_plain(commands: Sequence[Command]) -> list[dict[str, Any]]:
    """Commands as plain data: dicts of the fields that are not at their defaults."""
    return [
        {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in fields(one)
            if (value := getattr(one, field.name)) != field.default
        }
        for one in commands
    ]


def from_plain(items: Sequence[Mapping[str, Any]]) -> tuple[Command, ...]:
    """The commands again. Raises ValueError for too many, or where one has not the form that `as_plain` gives it."""
    if len(items) > MAX_COMMANDS:
        raise ValueError(f"{len(items):,} commands; {MAX_COMMANDS:,} are the most")
    commands = tuple(_command(item) for item in items)
    captured = Counter(one.graph for one in commands if one.kind == "capture")
    n_replayed = sum(captured[one.graph] for one in commands if one.kind == "replay")
    if n_replayed > MAX_COMMANDS:
        raise ValueError(f"replays run {n_replayed:,} captured kernels; {MAX_COMMANDS:,} are the most")
    n_mentions, n_streams = sum(len(one.reads) + len(one.writes) for one in commands), len({c.stream for c in commands})
    if n_mentions > MAX_MENTIONS or n_streams > MAX_STREAMS:
        most = f"{MAX_MENTIONS:,} and {MAX_STREAMS} are the most"
        raise ValueError(f"the commands touch memory {n_mentions:,} times, on {n_streams} streams; {most}")
    return commands


def _command(item: Mapping[str, Any]) -> Command:
    values = dict(item)
    for name, value in values.items():
        if name in ("reads", "writes"):
            if not all(type(block) is int for block in value):
                raise ValueError(f"{name} of a command should be numbers of blocks")
            values[name] = tuple(value)
        elif name not in _DEFAULTS or type(value) is not _TYPES.get(name, int) or (name != "stream" and value == ALL):
            raise ValueError(f"a command has no {name} of {value!r}")
    if values.get("kind") not in KINDS or values.get("place", "device") not in PLACES:
        raise ValueError(f"there is no such command: {values}")
    if values.get("nbytes", 0) < 0 or values.get("flops", 0) < 0:
        raise ValueError("no amount of a command is negative")
    return Command(**values)
