"""What is written down of a run, as plain data; nothing of it is judged."""

from __future__ import annotations

from dataclasses import dataclass, field

from grading.supervisor.result import CellResult
from grading.supervisor.witness import Reading
from labkit.spec import Observation, Tree


@dataclass
class Transcript:
    """What happened: `cells["02-sum"].printed`, `exercises["02-sum"][0].got`, `readings["02-sum"][0].measured`.

    cells: by cell id. exercises: by exercise id, a run for each case that was reached. readings: figures measured from
    outside or probed. launch_logs: of exercises of kernels, what each observed case says that it launched.
    """

    cells: dict[str, CellResult] = field(default_factory=dict)
    exercises: dict[str, list[Observation]] = field(default_factory=dict)
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    launch_logs: dict[str, list[Tree]] = field(default_factory=dict)
    cpu_s: float = 0.0


@dataclass
class RunsApart:
    """Of an exercise that is run by itself: a run of each case that was reached, figures that were measured or probed,
    CPU time of all its jobs.
    """

    runs: list[Observation] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    cpu_s: float = 0.0
