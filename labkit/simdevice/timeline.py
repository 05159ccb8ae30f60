"""Work out everything about a program from its commands: times, bytes, races.

The device does this while the program runs, and a judge can do it again from the commands alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from labkit.simdevice.clock import Clock
from labkit.simdevice.commands import Command
from labkit.simdevice.machine import Machine
from labkit.simdevice.memory import Ledger
from labkit.simdevice.races import Races
from labkit.simdevice.stale import StaleInputs


class DeviceTimeline:
    """clock: spans and the host's time; ledger: bytes; races and stale: what was found. Fed one command at a time.

    graphs: what was captured, by the number of the graph.
    """

    def __init__(self, machine: Machine) -> None:
        self.clock = Clock(machine)
        self.ledger = Ledger(self.clock)
        self.races = Races()
        self.stale = StaleInputs()
        self.graphs: dict[int, list[Command]] = defaultdict(list)

    def run(self, command: Command) -> None:
        """Take one command: first its time, then its memory, then whom it may collide with."""
        self.stale.run(command)
        self.clock.run(command)
        self.ledger.run(command)
        if command.kind == "capture":
            self.graphs[command.graph].append(command)
        elif command.kind == "replay":
            for captured in self.graphs[command.graph]:
                kernel = replace(captured, kind="kernel", stream=command.stream)
                self.clock.run_in_graph(kernel)
                self.races.run_in_graph(kernel)
        else:
            self.races.run(command)


def timeline_of(commands: Iterable[Command], machine: Machine) -> DeviceTimeline:
    """Run a whole list of commands. Raises KeyError or ValueError where they make no sense together."""
    result = DeviceTimeline(machine)
    for command in commands:
        result.run(command)
    return result
