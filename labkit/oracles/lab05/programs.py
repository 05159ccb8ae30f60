"""Lab 05: what a program did to a simulated device, worked out again from the list of its commands.

The times, bytes and races that the device reported beside the student's code are not looked at.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labkit.simdevice import Command, Machine, Race, Span, from_plain, timeline_of
from labkit.simdevice.timeline import DeviceTimeline
from labkit.spec import CaseRun, Hint

MOST_COMMANDS = 20_000
"""A right answer issues some hundreds; working out many more would hold up the judge."""


@dataclass(frozen=True)
class Program:
    """The part of a program that counts. Peaks include what was there before it.

    early_device_bytes: the device's peak until a copy to it begins.
    """

    commands: tuple[Command, ...]
    spans: tuple[Span, ...]
    races: tuple[Race, ...]
    device_bytes: int
    early_device_bytes: int
    host_bytes: int
    duration_s: float

    def copied_bytes(self, to_device: bool) -> int:
        """Bytes that went over the link in this direction."""
        return sum(one.nbytes for one in self.commands if one.kind == "copy" and (one.place == "device") == to_device)

    @property
    def flops(self) -> int:
        return sum(one.flops for one in self.commands)

    def any(self, kind: str, **values: object) -> bool:
        """Whether there is a command of this kind with these values."""
        return any(one.kind == kind and all(getattr(one, k) == v for k, v in values.items()) for one in self.commands)

    def hidden_share(self, kind: str) -> float:
        """The part of the time of these copies during which a kernel runs."""
        copies = [one for one in self.spans if one.kind == kind]
        kernels = sorted((one.start_s, one.end_s) for one in self.spans if one.kind == "kernel")
        ends_s = [end_s for _, end_s in kernels]
        done_s = [0.0, *itertools.accumulate(end_s - start_s for start_s, end_s in kernels)]

        def computed_s(until_s: float) -> float:
            """How long kernels have run by then: they run one at a time."""
            at = bisect.bisect_right(ends_s, until_s)
            return done_s[at] + (max(0.0, until_s - kernels[at][0]) if at < len(kernels) else 0.0)

        hidden_s = sum(computed_s(one.end_s) - computed_s(one.start_s) for one in copies)
        total_s = sum(one.end_s - one.start_s for one in copies)
        return hidden_s / total_s if total_s else 1.0


def program(got: dict, machine: Machine) -> Program:
    """From what a driver returned. Raises where the commands make no sense: a block that is not there, say."""
    if len(got["commands"]) > MOST_COMMANDS:
        raise ValueError("far more commands than the work takes")
    commands, n_before = from_plain(got["commands"]), got["n_before"]
    result: DeviceTimeline = timeline_of(commands[:n_before], machine)
    start_s, n_spans, n_races = result.clock.host_s, len(result.clock.spans), len(result.races.found)
    sizes = {one.block: one.nbytes for one in commands if one.kind == "alloc"}
    result.ledger.reset_peak()
    early_bytes = None
    for command in commands[n_before:]:
        if early_bytes is None and command.kind == "copy" and command.place == "device":
            early_bytes = result.ledger.peak_bytes["device"]
        result.run(command)
        if command.kind == "copy" and any(command.nbytes > sizes[block] for block in (*command.reads, *command.writes)):
            raise ValueError("a copy of more bytes than there are")
    peaks = result.ledger.peak_bytes
    return Program(
        commands[n_before:],
        tuple(result.clock.spans[n_spans:]),
        # What is freed too early is often the consequence of another missing wait: that one comes first.
        tuple(sorted(result.races.found[n_races:], key=lambda race: race.kind == "freed too early")),
        peaks["device"],
        peaks["device"] if early_bytes is None else early_bytes,
        peaks["pinned"] + peaks["pageable"],
        result.clock.done_s() - start_s,
    )


def first_race(races: Sequence[Race], kind: str, second: str = "") -> bool:
    """Whether the first race is of this kind, and its second access has this in its name."""
    return bool(races) and races[0].kind == kind and second in races[0].second


def nothing_overlaps(program_of: Callable[[CaseRun], Program]) -> tuple[Hint, Hint]:
    """The two usual reasons; `program_of` works it out from what came back."""
    return (
        Hint(
            lambda run: program_of(run).any("copy", stream=0),
            "The copies queue up with the kernels in one stream: issue them under `with cuda.stream(side):`.",
        ),
        Hint(
            lambda run: sum(one.kind == "sync" for one in program_of(run).commands) > 1,
            "synchronize stops the host, which then has nothing queued when the copy is done. Let one stream wait for "
            "the other: wait_stream and wait_event return at once.",
        ),
    )
