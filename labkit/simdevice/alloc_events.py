"""What a program asks of an allocator, in order: the events that a replay of the caching allocator takes.

They come from the commands of a simulated device or from a memory profile. Nothing is replayed here.
"""

from __future__ import annotations

from collections.abc import Iterable

from labkit.meters import MemoryProfile
from labkit.simdevice.commands import Command

AllocEvent = tuple[str, int, int]
"""("malloc", ticket, bytes), ("free", ticket, 0) or ("empty_cache", 0, 0)."""


def alloc_events_of_commands(commands: Iterable[Command]) -> list[AllocEvent]:
    """What the commands ask for on the device; those of no bytes are left out."""
    events: list[AllocEvent] = []
    on_device: set[int] = set()
    for one in commands:
        if one.kind == "alloc" and one.place == "device" and one.nbytes:
            on_device.add(one.block)
            events.append(("malloc", one.block, one.nbytes))
        elif one.kind == "free" and one.block in on_device:
            events.append(("free", one.block, 0))
        elif one.kind == "empty":
            events.append(("empty_cache", 0, 0))
    return events


def alloc_events_of_profile(profile: MemoryProfile) -> list[AllocEvent]:
    """What a profiled block asked for; what was there before it comes first. Storages that were resized count as made.

    Of what comes and goes at the same operation, what goes comes first: it was let go while the next was prepared.
    """
    events = []
    for ticket, record in enumerate(profile.tracker.records):
        if record.n_bytes:
            events.append((record.born, 1, ticket, record.n_bytes))
            # Made and dropped within one operation: it can only go after it came.
            if record.freed is not None:
                events.append((record.freed, 0 if record.freed > record.born else 2, ticket, 0))
    return [("malloc" if order == 1 else "free", ticket, n_bytes) for _, order, ticket, n_bytes in sorted(events)]
