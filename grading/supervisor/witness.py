"""What a budget is measured by that the student's process cannot forge: the seam, and the measures there are now.

`labkit.measures` names one for every measure: "outside" and "probe" are here, "router" is that of the ranks, and
"rerun" are the kernels run again. Memory is bounded and read from outside, by the kernel's own limits and records, on
a case that is large enough for a breach to stand out. What has no measure outside is a claim, and is probed with work
of a secret size: a meter that misreads it is not believed. A measure that disagrees gives no points and is a person's
to look at.

The time that a job may take is measured in the session, by the supervisor's clock.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grading.isolation.sandbox import Sandbox
from grading.supervisor.own_peak import OwnPeak
from grading.worker.procfs import Memory, gone_is_fine, memory_of, shared_mappings
from grading.worker.seal import Seal
from labkit.measures import MEASURES
from labkit.spec import Budget, MiB

SLACK_BYTES = 16 * MiB
"""What a process may take beyond its budget before it is doubted: code that is read in, the allocator's own pages."""
HALTED_SLACK_BYTES = 4 * MiB
"""What a process may hold beyond its budget at a named moment, where it has halted and nothing is on its way."""
KEPT_BYTES = 24 * MiB
"""What the notebook's cells may have left in memory when a case with bounded memory begins."""
SETTLING_S = 2.0
"""How long a process may take to free the result of the case before, on a busy machine."""
PROBE_SIZES = {
    "ops": ((3, 60), (1000, 4000)),
    "compile": ((3, 12), (20, 60)),
    "generated": ((3, 40), (65, 200)),
    "kept": ((3, 40), (65, 200)),
}
"""By meter, a small one and a large one: a meter that knows the answer's own figures misreads at least the other."""
FRAMES_BYTES = 16 * MiB
"""The most that may be put down to a rank's messages on their way, which no meter of its own counts."""


@dataclass(frozen=True)
class Reading:
    """What a process claims of a figure, and what was measured from outside: `Reading("peak_bytes", 64.0, 9e6)`.

    exact: both have to agree to the last one, as for a probe. Otherwise `limit` is what the budget allows, and so much
    more may be measured as `slack` says.
    """

    name: str
    claimed: float
    measured: float
    exact: bool = False
    limit: float = math.inf
    slack: float = 2 * SLACK_BYTES


class MemoryWitness:
    """The memory of a job that consists of one process, or of one rank of several, as read and bounded from outside."""

    def __init__(self, sandbox: Sandbox, rank: int = 0) -> None:
        self._sandbox = sandbox
        self._rank = rank
        self._baseline = Memory()
        self._base_bytes = 0
        self._own_base_bytes = 0
        self._limit_bytes = math.inf
        self._own_peak: OwnPeak | None = None

    def take_baseline(self) -> None:
        """Look at the job before any of the student's code runs."""
        for pid in self._sandbox.job_processes(self._rank):
            self._baseline = memory_of(pid)

    def seal(self, cpu_s: float | None, files: bool, own_bytes: int | None = None) -> str | None:
        """Leave the process to itself alone, without another process or thread; or why it could not be measured.

        own_bytes: what it may map privately from now on, so that a large file is read in pieces, or mapped.
        """
        data_bytes = None
        if own_bytes is not None:
            held_bytes = sum(memory_of(pid).data_bytes for pid in self._sandbox.job_processes(self._rank))
            if problem := _held_too_much(held_bytes - self._baseline.data_bytes):
                return problem
            data_bytes = held_bytes + own_bytes
        if problem := self._sandbox.seal_job(Seal(cpu_s, files, data_bytes), self._rank):
            return problem
        others = len(self._sandbox.job_processes(self._rank)) - 1
        return f"{others} more processes were running when it was to be measured" if others > 0 else None

    def bound_memory(self, inputs_bytes: int, limit_bytes: float, frames_bytes: int = 0) -> str | None:
        """Start the record of the peak, and have the kernel refuse what goes far beyond it; or why that is no use.

        What was prepared before would not show as growth: shared memory, a large block of its own. frames_bytes: what
        messages may take beside.
        """
        pids = self._sandbox.job_processes(self._rank)
        if len(pids) != 1:
            return "its process was not there any more"
        now = self._settled(pids[0])
        if problem := _held_too_much(self._kept_bytes(now)):
            return problem
        if shared_bytes := sum(shared_mappings(pids).values()):
            return f"{shared_bytes / MiB:.1f} MiB of shared memory were mapped when its memory was to be measured"
        with gone_is_fine(), open(f"/proc/{pids[0]}/clear_refs", "w") as file:
            file.write("5")
        self._base_bytes = _status_bytes(pids[0], "VmRSS")
        self._limit_bytes = limit_bytes
        self._own_base_bytes = now.resident_bytes
        room_bytes = inputs_bytes + math.ceil(limit_bytes) + frames_bytes + SLACK_BYTES
        problem = self._sandbox.seal_job(
            Seal(
                files=False,
                data_bytes=now.data_bytes + room_bytes,
                # Code that is read in late takes addresses, too.
                addresses_bytes=now.addresses_bytes + room_bytes + SLACK_BYTES,
            ),
            self._rank,
        )
        if problem is None:
            self._own_peak = OwnPeak(pids[0])
        return problem

    def _settled(self, pid: int) -> Memory:
        """What the process holds, once it has let go of the last case's result, which may have arrived before that."""
        ends_at = time.monotonic() + SETTLING_S
        now = memory_of(pid)
        while self._kept_bytes(now) > KEPT_BYTES and time.monotonic() < ends_at:
            time.sleep(SETTLING_S / 100)
            now = memory_of(pid)
        return now

    def _kept_bytes(self, now: Memory) -> int:
        """How much more it holds than before any of the student's code ran."""
        baseline = self._baseline
        return max(
            now.data_bytes - baseline.data_bytes,
            now.resident_bytes - baseline.resident_bytes,
            now.stack_bytes - baseline.stack_bytes,
        )

    def reading(self, claimed_bytes: float, inputs_bytes: int) -> Reading:
        """The most that the job may have held since `bound_memory`, beyond what it held then and its inputs."""
        grown_bytes = -self._base_bytes
        grown_bytes += sum(_status_bytes(pid, "VmHWM") for pid in self._sandbox.job_processes(self._rank))
        if self._own_peak is not None:
            # Pages of files that it let go of would make room in the kernel's record for its own.
            grown_bytes = max(grown_bytes, self._own_peak.stop() - self._own_base_bytes)
        return Reading("peak_bytes", claimed_bytes, max(grown_bytes - inputs_bytes, 0), limit=self._limit_bytes)

    def held_bytes(self, inputs_bytes: int) -> int:
        """What the job holds now, beyond what it held at `bound_memory` and its inputs. To be asked where it waits."""
        now_bytes = sum(memory_of(pid).resident_bytes for pid in self._sandbox.job_processes(self._rank))
        return max(now_bytes - self._own_base_bytes - inputs_bytes, 0)


def _held_too_much(kept_bytes: int) -> str | None:
    """What was prepared before would not show as growth, and no limit would refuse it."""
    if kept_bytes <= KEPT_BYTES:
        return None
    held = f"{kept_bytes / MiB:.0f} MiB, stacks of its threads included,"
    return f"the notebook already held {held} when its memory was to be measured"


def objection(reading: Reading) -> str | None:
    """Why the student's process is not believed, if it is not."""
    limit = reading.limit
    if reading.exact:
        if reading.claimed == reading.measured:
            return None
        return f"the meter of {reading.name} counted {reading.claimed:g} where there were {reading.measured:g}"
    if reading.measured <= limit + reading.slack or reading.claimed > limit:
        return None
    _, _, moment = reading.name.partition(", ")
    where = f"{moment}: " if moment else ""
    return (
        f"{where}the meter said {reading.claimed / MiB:.1f} MiB, but from outside the process grew by "
        f"{reading.measured / MiB:.1f} MiB; {limit / MiB:.1f} MiB are allowed"
    )


def probes_for(budgets: Sequence[Budget], rng: random.Random) -> tuple[tuple[str, int], ...]:
    """The probes, each of a secret size, that go with these budgets."""
    measures = [MEASURES[budget.name] for budget in budgets]
    meters = dict.fromkeys(measure.meter for measure in measures if measure.witness == "probe")
    return tuple((meter, rng.randint(*sizes)) for meter in meters for sizes in PROBE_SIZES[meter])


def probe_readings(meter: str, n: int, claimed: Mapping[str, float]) -> list[Reading]:
    """What a meter counted on the probe of size n (`grading/worker/probes.py`), beside the truth."""
    return [Reading(name, claimed.get(name, 0.0), figure, exact=True) for name, figure in _PROBED[meter](n).items()]


def _compiles(n: int) -> dict[str, float]:
    n_sizes = n % 4 + 1
    return {
        "graphs": 2 * n_sizes,
        "graph_breaks": n_sizes,
        "frames": 2 * n_sizes,
        "eager_calls": n % 3 + 1,
        "captured_operations": n_sizes * (n + 1),
    }


def _kernels(n: int) -> dict[str, float]:
    n_products = n % 3 + 1
    # A product reads two matrices and writes one; the chain behind it reads one and writes one.
    return {
        "generated_kernels": n_products,
        "library_calls": n_products,
        "kernel_bytes": n_products * 5 * 4 * n * n,
    }


def _kept(n: int) -> dict[str, float]:
    n_products = n % 3 + 2
    # The backward pass of a product reads its input, which for the first of them is the function's own; that of the
    # chain reads the input of each sine, and two of these three can be computed again from the first.
    return {
        "kept_bytes": n_products * 4 * n * n,
        "kept_without_recomputing_bytes": (n_products + 2) * 4 * n * n,
    }


_PROBED = {
    "ops": lambda n: {"dispatches": n + 1, "flops": 2 * n},
    "compile": _compiles,
    "generated": _kernels,
    "kept": _kept,
}


def _status_bytes(pid: int, name: str) -> int:
    with gone_is_fine(), open(f"/proc/{pid}/status") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:")), 0)
    return 0
