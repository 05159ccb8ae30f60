"""Replays that do not read what the program means them to read: memory that is gone, or the same input as before.

A graph reads at the addresses of its capture. On CUDA nothing reports either mistake, and the results are wrong. What
a replay should have read is not known here: a replay that repeats its input on purpose is reported as well.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from labkit.simdevice.commands import ALL, Command


@dataclass(frozen=True)
class StaleInput:
    """kind: "freed" or "unchanged".

    StaleInput("freed", "replay 1 of graph 1: mm uses memory that was freed after the capture: keep a reference")
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass
class _GraphMemory:
    """own: what the capture asked for. users: of other memory that the graph touches, the first kernel that does.

    fresh: inputs that were written after the latest replay.
    """

    own: set[int] = field(default_factory=set)
    users: dict[int, str] = field(default_factory=dict)
    writes: set[int] = field(default_factory=set)
    fresh: set[int] = field(default_factory=set)
    n_replays: int = 0

    @property
    def inputs(self) -> set[int]:
        """What the graph reads and never writes: of what it does write, the graph itself makes the next value."""
        return self.users.keys() - self.writes


class StaleInputs:
    """Takes the commands in order and collects in `found` what is stale."""

    def __init__(self) -> None:
        self.found: list[StaleInput] = []
        self._graphs: dict[int, _GraphMemory] = defaultdict(_GraphMemory)
        self._freed: set[int] = set()

    def run(self, command: Command) -> None:
        """Take down one command."""
        if command.kind == "free":
            self._freed.add(command.block)
        elif command.graph != ALL and command.kind in ("alloc", "capture"):
            self._capture(command)
        elif command.kind == "replay":
            self._replay(command.graph)
        else:
            self._wrote(set(command.writes))

    def _capture(self, command: Command) -> None:
        graph = self._graphs[command.graph]
        if command.kind == "alloc":
            graph.own.add(command.block)
            return
        for block in (*command.reads, *command.writes):
            if block not in graph.own:
                graph.users.setdefault(block, command.name)
        graph.writes |= set(command.writes) - graph.own

    def _replay(self, number: int) -> None:
        graph = self._graphs[number]
        graph.n_replays += 1
        replay = f"replay {graph.n_replays} of graph {number}"
        for block, kernel in graph.users.items():
            if block in self._freed:
                remedy = "keep a reference to every tensor that the graph uses"
                text = f"{replay}: {kernel} uses memory that was freed after the capture: {remedy}"
                self.found.append(StaleInput("freed", text))
        if graph.n_replays > 1 and graph.inputs and not graph.fresh | (graph.inputs & self._freed):
            kernel = graph.users[min(graph.inputs)]
            remedy = "copy new values there, static.copy_(new); a tensor at another address is not seen"
            text = (
                f"{replay} reads the same input as the one before: nothing was written where {kernel} reads: {remedy}"
            )
            self.found.append(StaleInput("unchanged", text))
        graph.fresh.clear()
        self._wrote(graph.writes | graph.own)

    def _wrote(self, blocks: set[int]) -> None:
        for graph in self._graphs.values():
            graph.fresh |= blocks & graph.inputs
