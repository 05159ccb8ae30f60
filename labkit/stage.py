"""What a driver is handed beside answer and inputs: a device, a scratch folder, ranks, a store, a clock, meters.

It measures what the driver asks for and nothing else; limits and isolation are not its business.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from labkit.clock import VirtualClock
from labkit.measures import add_moment, at_moment
from labkit.meters import METERS
from labkit.meters.memory import held_now
from labkit.ranks import Moment
from labkit.store import Store


@dataclass
class Stage:
    """tmp is an empty folder of this run's own; comm connects the ranks of an exercise that has several. clock: for
    threads that take turns in virtual time, of an exercise that has one rank. store: of an exercise that has one, for
    the job of this number. moments: what several ranks have marked, noted where they are run.
    """

    device: torch.device
    tmp: Path
    rank: int = 0
    world_size: int = 1
    comm: Any = None
    store: Store | None = None
    job: int = 0
    clock: VirtualClock = field(default_factory=VirtualClock)
    measured: dict[str, float] = field(default_factory=dict)
    held: dict[str, Sequence[str]] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)

    def meter(self, name: str) -> AbstractContextManager[None]:
        """Measure a block: `with stage.meter("memory"): ...`; figures go to `measured`, what is in them to `held`."""
        return METERS[name](self.measured, self.held)

    def mark(self, label: str) -> None:
        """Note that the run has reached a point, in order, for properties about the order of events.

        Of several ranks all halt here until each has come to this point: one that does not, or that comes to another
        one, ends the run with an error. What a rank holds then, of tensors made in its block of `meter("memory")`, is
        the figure of a `Budget("held_bytes", ..., at=label)`; the grader reads every rank's memory from outside, too.
        """
        self.marks.append(label)
        if self.comm is None:
            return
        if held := held_now():
            add_moment(self.measured, "held_bytes", label, held.n_bytes)
            if self.measured[at_moment("held_bytes", label)] == held.n_bytes:
                self.held[at_moment("held_bytes", label)] = held.named
        self.comm.mark(label)
