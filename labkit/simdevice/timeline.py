"""Work out everything about a program from its commands: times, bytes, races.

The device does this while the program runs, and a judge can do it again from the commands alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from labkit.simdevice.clock import Clock
from labkit.simdevice.commands import Command
from labkit.simdevice.machine import Machine
from labkit.simdevice.memory import Ledger
from labkit.simdevice.races import Races


class DeviceTimeline:
    """clock: spans and the host's time; ledger: bytes; races: what was found. Fed one command at a time."""

    def __init__(self, machine: Machine) -> None:
        self.clock = Clock(machine)
        self.ledger = Ledger(self.clock)
        self.races = Races()

    def run(self, command: Command) -> None:
        """Take one command: first its time, then its memory, then whom it may collide with."""
        self.clock.run(command)
        self.ledger.run(command)
        self.races.run(command)


def timeline_of(commands: Iterable[Command], machine: Machine) -> DeviceTimeline:
    """Run a whole list of commands. Raises KeyError or ValueError where they make no sense together."""
    result = DeviceTimeline(machine)
    for command in commands:
        result.run(command)
    return result
