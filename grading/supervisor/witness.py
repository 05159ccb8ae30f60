"""What a budget is measured by that the student's process cannot forge: the seam, and the measures there are now.

`WITNESSES` names one for every budget. Memory is read from outside, from the kernel's own records, on a case that is
large enough for a breach to stand out. What has no measure outside is a claim, and is probed with work of a secret
size: a meter that misreads it is not believed. A measure that disagrees gives no points and is a person's to look at.

The time that a job may take is watched in the conversation, by the supervisor's clock.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from grading.supervisor.forkserver import Forkserver
from labkit.spec import Budget, MiB, Observation
from labkit.tree import leaves

SLACK_BYTES = 12 * MiB
"""What a process may take beyond its budget before it is doubted: code that is read in, the allocator's own pages."""


@dataclass(frozen=True)
class Witness:
    """Where the measure of a budget comes from.

    "outside": the figure itself is read from outside. "probe": `meter` is tried on work of a known size. "inside": it
    is counted beside the student's code and taken on trust, which no exercise of the course may rest on.
    """

    how: Literal["outside", "probe", "inside"]
    meter: str = ""


WITNESSES = {
    "peak_bytes": Witness("outside"),
    "dispatches": Witness("probe", "ops"),
    "bytes_sent": Witness("inside"),
    "messages": Witness("inside"),
    "rounds": Witness("inside"),
}
"""By the budget's name; every budget of an oracle has one."""


@dataclass(frozen=True)
class Seen:
    """What the student's process said of a figure, and what it was seen to be."""

    name: str
    claimed: float
    measured: float
    exact: bool = False


class Watch:
    """The memory of the running job's processes as seen from outside."""

    def __init__(self, forkserver: Forkserver) -> None:
        self._forkserver = forkserver
        self._base_bytes = 0

    def begin(self) -> None:
        """Start the record of the peak anew."""
        pids = self._forkserver.job_processes()
        for pid in pids:
            with _gone_is_fine(), open(f"/proc/{pid}/clear_refs", "w") as file:
                file.write("5")
        self._base_bytes = sum(_status_bytes(pid, "VmRSS") for pid in pids)

    def seen(self, run: Observation) -> Seen:
        """The most that the job's processes may have held since `begin`, beyond what they held then and the inputs."""
        pids = self._forkserver.job_processes()
        peak_bytes = sum(_status_bytes(pid, "VmHWM") for pid in pids) - self._base_bytes
        inputs_bytes = sum(leaf.nbytes for _, leaf in leaves(run.tree) if isinstance(leaf, torch.Tensor))
        return Seen("peak_bytes", run.measured.get("peak_bytes", 0.0), max(peak_bytes - inputs_bytes, 0))


def objection(seen: Seen, limit: float) -> str | None:
    """Why the student's process is not believed, if it is not: `limit` is what the budget allows."""
    if seen.exact:
        if seen.claimed == seen.measured:
            return None
        return f"the meter of {seen.name} counted {seen.claimed:g} operations where there were {seen.measured:g}"
    if seen.measured <= limit + SLACK_BYTES or seen.claimed > limit:
        return None
    return (
        f"the meter said {seen.claimed / MiB:.1f} MiB, but from outside the process grew by {seen.measured / MiB:.1f} "
        f"MiB; {limit / MiB:.1f} MiB are allowed"
    )


def probes_for(budgets: Sequence[Budget], rng: random.Random) -> tuple[tuple[str, int], ...]:
    """The probes, each of a secret size, that go with these budgets."""
    meters = [WITNESSES[budget.name].meter for budget in budgets if WITNESSES[budget.name].how == "probe"]
    return tuple((meter, rng.randint(3, 60)) for meter in meters for _ in range(2))


@contextlib.contextmanager
def _gone_is_fine():
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        yield


def _status_bytes(pid: int, name: str) -> int:
    with _gone_is_fine(), open(f"/proc/{pid}/status") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:")), 0)
    return 0
