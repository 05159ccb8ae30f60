"""What a notebook's run may take beside its exercises' own limits, what an exercise may do, and limits in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grading.worker.confine.plan import NO_FILES, PLAIN, with_grants
from grading.worker.procfs import PACKET_BYTES
from labkit.spec import Exercise, GiB, Trouble

if TYPE_CHECKING:
    from grading.supervisor.cases import CaseSet


@dataclass(frozen=True)
class CellLimits:
    """Wall time for one cell, for all cells of one run through them, and for everything; characters printed in all."""

    one_s: float = 30.0
    all_s: float = 60.0
    submission_s: float = 300.0
    printed: int = 2**20

    def out_of_time(self) -> Trouble:
        """What happened to a step that there was no time left for."""
        return Trouble("wall", f"the notebook used more than {self.submission_s:g} s before this could be run")


CELL_LIMITS = CellLimits()


def granted(exercise: Exercise, cases: CaseSet) -> tuple[str, ...]:
    """What an exercise may do beyond the plain profile, or less than that: `("loopback", "files")`."""
    return (*exercise.run.needs, NO_FILES) if cases.bounds_memory else exercise.run.needs


def over_limit(over: str, grants: tuple[str, ...]) -> Trouble:
    """What happened to a job that was ended for this limit (`JobEnded.over`), under what it had been granted."""
    limits = with_grants(PLAIN, grants)
    if over == "cpu":
        return Trouble("cpu", "it used up its CPU time")
    text = f"its processes together used more than {limits.memory_bytes / GiB:g} GiB of memory"
    if "loopback" in grants:
        # Far more than a program that sends many small packets believes to hold.
        text += f", with what may wait in sockets ({PACKET_BYTES // 1024} KiB for each packet that was ever sent)"
    return Trouble("memory", text)
