"""Run an exercise of several ranks: a job for each rank, which runs the cells and then is that rank in every case.

Ranks are not forks of one process that has run the student's cells: what such forks still share (open files and pipes,
a helper that a cell left running, one another's memory under /proc) could not be taken from them again. Each runs the
cells by itself, in a box that nothing but its channel leads out of. What the runs are worth is judged elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from grading.isolation.sandbox import InfrastructureFault, Sandbox
from grading.supervisor.cases import CELL_LIMITS, UNMEASURED, CaseInputs, CaseSet, CellLimits, bytes_in
from grading.supervisor.ranks.router import RankTrouble, Router
from grading.supervisor.session import (
    GRACE_S,
    NO_MORE_CASES,
    START_S,
    LostUnderStudent,
    granted,
    measured_of,
    over_limit,
)
from grading.supervisor.witness import FRAMES_BYTES, MemoryWitness, Reading, probe_readings
from grading.worker.protocol.steps import Step, step_to_tree
from grading.worker.wire.frames import Channel, Closed, WireError, case_to_tree, clean
from labkit.measures import of_ranks
from labkit.observe import n_ranks
from labkit.ranks import Cluster
from labkit.ranks.traffic import figures
from labkit.spec import Exercise, Observation, Tree, Trouble
from labkit.tree import part_of

TIMES_ALONE = 6
"""So much longer than one process its ranks may take for all cases: at every call they wait for one another's turn on
the machine's processors, too, and not only for one another. No rank may say nothing for longer than the exercise's own
time."""
CELLS_TIMES = 3
"""So much longer than in one process a cell may take that all ranks run at the same time."""
DISMISS_S = 5.0


@dataclass
class Routed:
    """What happened: a run of each case that was reached, figures that were probed, CPU time of all ranks."""

    runs: list[Observation] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    cpu_s: float = 0.0


def run_routed(
    sandbox: Sandbox, steps: Sequence[Step], exercise: Exercise, cases: CaseSet, limits: CellLimits = CELL_LIMITS
) -> Routed:
    """steps: the cells that each rank runs first, and the exercise as the last one.

    CPU time is limited, and memory bounded, for each rank by itself. Raises InfrastructureFault when the trouble is
    ours.
    """
    routed = Routed()
    ranks = _Ranks(sandbox, exercise, cases, limits)
    try:
        ranks.run(steps, routed)
    finally:
        over = ranks.end(routed)
    if over and routed.runs and routed.runs[-1].trouble and routed.runs[-1].trouble.kind == "died":
        _give_reason(routed, over_limit(over, ranks.grants))
    return routed


class _Ranks:
    """The jobs of one exercise, from their first step to their end."""

    def __init__(self, sandbox: Sandbox, exercise: Exercise, cases: CaseSet, limits: CellLimits) -> None:
        self._sandbox = sandbox
        self._exercise = exercise
        self._cases = cases
        self._limits = limits
        self._has_begun = False
        n = max(n_ranks(exercise, inputs.case) for inputs in cases.inputs)
        self.grants = granted(exercise, cases)
        self._channels = sandbox.open_ranks(n, self.grants)
        self._witnesses = [MemoryWitness(sandbox, rank) for rank in range(n)] if cases.is_sealed else []

    def end(self, routed: Routed) -> str | None:
        """End them all; the limit for which they had been ended before, or None. Raises InfrastructureFault."""
        for channel in self._channels:
            channel.close()
        try:
            ended = self._sandbox.kill_job()
        except InfrastructureFault as error:
            raise (LostUnderStudent(str(error)) if self._has_begun else error) from error
        routed.cpu_s += ended.cpu_s
        return ended.over

    def run(self, steps: Sequence[Step], routed: Routed) -> None:
        self._begin(steps)
        try:
            self._cells(steps[:-1])
            limit_s = self._ready()
        except Exception as error:
            # Whatever a cell did to its process: it went well the first time, or it would not be here again.
            trouble = Trouble("cell", f"a cell before it did not end well in a rank of its own ({_words(error)})")
            routed.runs.append(Observation(self._cases.inputs[0].case, self._cases.inputs[0].tree, trouble=trouble))
            return
        if problem := self._sealed():
            routed.runs.append(_unmeasured(self._cases.inputs[0], problem))
            return
        for inputs in self._cases.inputs:
            if inputs.bounds_memory and (problem := self._bound_memory(inputs)):
                routed.runs.append(_unmeasured(inputs, problem))
                return
            began = time.monotonic()
            run, can_go_on = self._case(inputs, began + limit_s, routed)
            limit_s -= time.monotonic() - began
            routed.runs.append(run)
            if not can_go_on or (run.trouble and run.trouble.kind in NO_MORE_CASES):
                return
        self._probe(routed, limit_s)

    def _begin(self, steps: Sequence[Step]) -> None:
        """Hand every rank its job and let them go; until then it is our own code that takes the time."""
        started_by = time.monotonic() + START_S
        try:
            for channel in self._channels:
                channel.send("job", {"steps": [step_to_tree(step) for step in steps], "fork": False}, started_by)
            for channel in self._channels:
                _wait(channel, "begins", started_by)
            self._has_begun = True
            for witness in self._witnesses:
                witness.take_baseline()
            for channel in self._channels:
                channel.send("go", deadline=started_by)
        except (TimeoutError, Closed) as error:
            words = self._sandbox.last_words()
            raise InfrastructureFault(f"a rank's worker ended before it ran anything: {words}") from error

    def _cells(self, cells: Sequence[Step]) -> None:
        ends_at = time.monotonic() + CELLS_TIMES * self._limits.all_s
        for _ in cells:
            deadline = min(time.monotonic() + CELLS_TIMES * self._limits.one_s, ends_at)
            for channel in self._channels:
                _wait(channel, "at", deadline)
                _wait(channel, "cell", deadline)

    def _ready(self) -> float:
        """Wait until each is; the time that is left for the cases."""
        limit_s = TIMES_ALONE * self._exercise.run.wall_s + GRACE_S
        began = time.monotonic()
        for channel in self._channels:
            _wait(channel, "at", began + limit_s)
            _wait(channel, "ready", began + limit_s)
        return limit_s - (time.monotonic() - began)

    def _sealed(self) -> str | None:
        """Seal every rank, where that is asked for; or why what one of them does could not be measured."""
        problems = (witness.seal(self._cases.cpu_s, files=not self._cases.bounds_memory) for witness in self._witnesses)
        return next((problem for problem in problems if problem), None)

    def _bound_memory(self, inputs: CaseInputs) -> str | None:
        """Start the record of the memory of every rank of a case; or why it would be of no use."""
        for rank, witness in enumerate(self._witnesses[: n_ranks(self._exercise, inputs.case)]):
            inputs_bytes = bytes_in(part_of(inputs.tree, rank))
            if problem := witness.bound_memory(inputs_bytes, inputs.memory_limit_bytes, FRAMES_BYTES):
                return f"rank {rank}: {problem}"
        return None

    def _case(self, inputs: CaseInputs, deadline: float, routed: Routed) -> tuple[Observation, bool]:
        """A case's run, and whether the ranks are there for another."""
        exercise, case = self._exercise, inputs.case
        channels = self._channels[: n_ranks(exercise, case)]
        cluster = exercise.run.cluster(case) if exercise.run.cluster else Cluster()
        router = Router(channels, cluster, deadline, patience_s=exercise.run.wall_s + GRACE_S)
        blamed = None
        try:
            for rank, channel in enumerate(channels):
                sent = {"case": case_to_tree(case), "tree": part_of(inputs.tree, rank), "watched": inputs.bounds_memory}
                place = {"rank": rank, "world_size": len(channels)}
                channel.send("case", {**sent, **place}, deadline, as_memory=inputs.bounds_memory)
            said = router.run()
            if inputs.bounds_memory:
                routed.readings.append(self._largest_reading(inputs, router, said))
            return self._observation(inputs, router, said), True
        except RankTrouble as error:
            trouble, blamed = error.trouble, error.blamed
        except TimeoutError:
            trouble = Trouble("wall", f"it did not finish within {exercise.run.wall_s:g} s of wall time")
        except Closed:
            trouble = Trouble("died", "the process of a rank ended")
        except Exception as error:
            # Whatever a worker may send: reading it must end no more than its own exercise.
            trouble = Trouble("died", clean(f"what a rank sent back could not be read ({error})", 200))
        where = router.dismiss(DISMISS_S)
        if blamed is not None and where is not None:
            trouble = Trouble(trouble.kind, trouble.text, where.get(blamed))
        return Observation(case, inputs.tree, trouble=trouble), where is not None

    def _observation(self, inputs: CaseInputs, router: Router, said: Sequence[dict[str, Tree]]) -> Observation:
        # Ours count, whatever a rank says of them.
        measured = of_ranks(measured_of(one["measured"]) for one in said) | figures(router.traffic())
        # What is not sent back was not changed.
        parts = [part_of(inputs.tree, rank) for rank in range(len(said))]
        # Nor is what was lent looked at afterwards.
        back = parts if inputs.bounds_memory else [one.get("back", part) for one, part in zip(said, parts)]
        return Observation(inputs.case, inputs.tree, {"ranks": [one["got"] for one in said]}, {"ranks": back}, measured)

    def _largest_reading(self, inputs: CaseInputs, router: Router, said: Sequence[dict[str, Tree]]) -> Reading:
        """The figures of the rank that has taken the most, whose memory is not that of its inputs and its messages."""
        readings = []
        for rank, one in enumerate(said):
            claimed_bytes = measured_of(one["measured"]).get("peak_bytes", 0.0)
            frames_bytes = min(router.frames_bytes(rank), FRAMES_BYTES)
            inputs_bytes = bytes_in(part_of(inputs.tree, rank))
            readings.append(self._witnesses[rank].reading(claimed_bytes, inputs_bytes + frames_bytes))
        return max(readings, key=lambda figure: figure.measured)

    def _probe(self, routed: Routed, within_s: float) -> None:
        """Try the meters of every rank on work of a secret size; one that does not answer has counted nothing."""
        deadline = time.monotonic() + within_s
        for meter, n in self._cases.probes:
            for channel in self._channels:
                try:
                    channel.send("probe", {"meter": meter, "n": n}, deadline)
                    said = measured_of(_wait(channel, "probed", deadline)["measured"])
                except Exception:
                    said = {}
                routed.readings += probe_readings(meter, n, said)


def _wait(channel: Channel, kind: str, deadline: float) -> dict[str, Tree]:
    got, said = channel.receive(deadline)
    if got != kind:
        raise WireError(f'"{got[:40]}" where "{kind}" was due')
    return said


def _unmeasured(inputs: CaseInputs, problem: str) -> Observation:
    return Observation(inputs.case, inputs.tree, trouble=Trouble(UNMEASURED, problem))


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return "its process ended" if isinstance(error, Closed) else clean(str(error), 100)


def _give_reason(routed: Routed, trouble: Trouble) -> None:
    last = routed.runs[-1]
    routed.runs[-1] = Observation(last.case, last.tree, trouble=trouble)
