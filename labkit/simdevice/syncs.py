"""Where a program made the host wait without saying so: values that it read, copies that did not return at once.

Waiting that was asked for (`synchronize` of a device, stream or event) is not among them, nor what the allocator does.
"""

from __future__ import annotations

from collections.abc import Iterable

from labkit.simdevice.commands import Command


def implicit_syncs(commands: Iterable[Command]) -> tuple[Command, ...]:
    """The commands that stop the host as a side effect, in order.

    On CUDA these are `.item()` and all that calls it (`float`, `if`, `print`), `.tolist()`, operations whose result
    has a length that depends on values (`nonzero`, indexing by a mask), and copies that are not non_blocking or whose
    host side is not pinned.
    """
    return tuple(one for one in commands if (one.kind == "sync" and one.name) or (one.kind == "copy" and one.blocking))
