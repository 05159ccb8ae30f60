"""Lab 09: the commands that an answer gave to a simulated device, out of all that a driver returned.

What they mean is the business of the exercises' own modules.
"""

from __future__ import annotations

from labkit.simdevice import Command, from_plain


def own_bounds(got: dict) -> tuple[int, int]:
    """Where the answer's commands begin and end. Raises ValueError where that cannot be."""
    n_before, n_after = got["n_before"], got["n_after"]
    if type(n_before) is not int or type(n_after) is not int or not 0 < n_before <= n_after <= len(got["commands"]):
        raise ValueError("the answer's commands lie outside of the list")
    return n_before, n_after


def own_commands(got: dict, until: int | None = None) -> tuple[Command, ...]:
    """The answer's commands, or those of them before the place `until` in the whole list."""
    n_before, n_after = own_bounds(got)
    return from_plain(got["commands"][n_before : n_after if until is None else until])


def host_waits(commands: tuple[Command, ...]) -> list[Command]:
    """The commands for which the host waits."""
    return [one for one in commands if one.kind == "sync" or (one.kind == "copy" and one.blocking)]
