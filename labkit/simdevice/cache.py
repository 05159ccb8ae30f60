"""The device's last-level cache: which memory is in it when a kernel comes to touch it.

Whole storages go in, and the one that was touched longest ago goes out first; a storage larger than the cache passes
through, and nothing else is left. There are no lines, no sets, and memory that is handed out again starts cold.
"""

from __future__ import annotations

from labkit.simdevice.commands import Command


class Cache:
    """Fed with the commands in their order. Capacity 0 is a device without a cache."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._sizes: dict[int, int] = {}
        self._held: dict[int, int] = {}
        self._held_bytes = 0

    def run(self, command: Command) -> int:
        """Take one command; returns how many bytes of what a kernel moves are found in the cache."""
        if command.kind == "alloc" and command.place == "device":
            self._sizes[command.block] = command.nbytes
        elif command.kind == "free":
            self._sizes.pop(command.block, None)
            self._drop(command.block)
        elif command.kind == "kernel":
            touched = dict.fromkeys(block for block in (*command.reads, *command.writes) if block in self._sizes)
            found_bytes = sum(self._held.get(block, 0) for block in touched)
            touched_bytes = sum(self._sizes[block] for block in touched)
            for block in touched:
                self._take(block)
            # In proportion: what is read and written in place moves twice.
            return command.nbytes * found_bytes // touched_bytes if touched_bytes else 0
        return 0

    def _take(self, block: int) -> None:
        self._drop(block)
        if self._sizes[block] > self._capacity_bytes:
            self._held.clear()
            self._held_bytes = 0
            return
        self._held[block] = self._sizes[block]
        self._held_bytes += self._sizes[block]
        while self._held_bytes > self._capacity_bytes:
            # A dict is in the order of insertion, so the first is the one touched longest ago.
            self._drop(next(iter(self._held)))

    def _drop(self, block: int) -> None:
        self._held_bytes -= self._held.pop(block, 0)
