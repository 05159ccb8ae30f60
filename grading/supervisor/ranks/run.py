"""Run an exercise of several ranks: a job for each rank, which runs the cells and then is that rank in every case.

Ranks are not forks of one process that has run the student's cells: what such forks still share (open files and pipes,
a helper that a cell left running, one another's memory under /proc) could not be taken from them again. Each runs the
cells by itself, in a box that nothing but its channel leads out of. What the runs are worth is judged elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from grading.isolation.sandbox import Sandbox
from grading.supervisor.attempts import NO_MORE_CASES
from grading.supervisor.cases import UNMEASURED, CaseInputs, CaseSet, bytes_in
from grading.supervisor.limits import CELL_LIMITS, CellLimits, granted, over_limit
from grading.supervisor.ranks.router import Router
from grading.supervisor.ranks.seat import RankTrouble
from grading.supervisor.session import GRACE_S, Session
from grading.supervisor.transcript import RunsApart
from grading.supervisor.witness import FRAMES_BYTES, HALTED_SLACK_BYTES, Reading, probe_readings
from grading.worker.protocol.job import Observed, RunCase
from grading.worker.protocol.steps import Step
from grading.worker.protocol.trees import case_to_tree, clean
from grading.worker.wire.frames import Closed
from grading.worker.wire.typed import WireError
from labkit.measures import at_moment, held_of_ranks, of_ranks, without_moments
from labkit.observe import n_ranks
from labkit.ranks import Cluster
from labkit.ranks.traffic import figures
from labkit.spec import Exercise, Observation, Trouble
from labkit.tree import part_of

TIMES_ALONE = 6
"""So much longer than one process its ranks may take for all cases: at every call they wait for one another's turn on
the machine's processors, too, and not only for one another. No rank may be silent for longer than the exercise's own
time."""
CELLS_TIMES = 3
"""So much longer than in one process a cell may take that all ranks run at the same time."""
DISMISS_S = 5.0


def run_in_ranks(
    sandbox: Sandbox, steps: Sequence[Step], exercise: Exercise, cases: CaseSet, limits: CellLimits = CELL_LIMITS
) -> RunsApart:
    """steps: the cells that each rank runs first, and the exercise as the last one.

    CPU time is limited, and memory bounded, for each rank by itself. Raises InfrastructureFault when the trouble is
    ours.
    """
    found = RunsApart()
    n = max(n_ranks(exercise, inputs.case) for inputs in cases.inputs)
    grants = granted(exercise, cases)
    session = Session.open_ranks(sandbox, n, grants, cases.is_sealed)
    try:
        session.begin(steps, fork=False)
        _Ranks(session, exercise, cases, limits, found).run(n_cells=len(steps) - 1)
    finally:
        ended = session.end()
        found.cpu_s += ended.cpu_s
    if ended.over and found.runs and found.runs[-1].trouble and found.runs[-1].trouble.kind == "died":
        last = found.runs[-1]
        found.runs[-1] = Observation(last.case, last.tree, trouble=over_limit(ended.over, grants))
    return found


class _Ranks:
    """One exercise on a job that has begun: its cells, its cases, its probes."""

    def __init__(
        self, session: Session, exercise: Exercise, cases: CaseSet, limits: CellLimits, found: RunsApart
    ) -> None:
        self._session = session
        self._exercise = exercise
        self._cases = cases
        self._limits = limits
        self._found = found

    def run(self, n_cells: int) -> None:
        first, cases = self._cases.inputs[0], self._cases
        try:
            self._run_cells(n_cells)
            limit_s = self._ready()
        except TimeoutError:
            trouble = Trouble("wall", "the cells before it took too long in its ranks")
            self._found.runs.append(first.without_run(trouble))
            return
        except Exception as error:
            # Whatever a cell did to its process: it went well the first time, or it would not be here again.
            trouble = Trouble("cell", f"a cell before it did not end well in a rank of its own ({_words(error)})")
            self._found.runs.append(first.without_run(trouble))
            return
        if problem := self._session.seal(cases.cpu_s, not cases.bounds_memory, cases.own_bytes):
            self._found.runs.append(first.without_run(Trouble(UNMEASURED, problem)))
            return
        for inputs in cases.inputs:
            if inputs.bounds_memory and (problem := self._bound_memory(inputs)):
                self._found.runs.append(inputs.without_run(Trouble(UNMEASURED, problem)))
                return
            began = time.monotonic()
            run, can_go_on = self._case(inputs, began + limit_s)
            limit_s -= time.monotonic() - began
            self._found.runs.append(run)
            if not can_go_on or (run.trouble and run.trouble.kind in NO_MORE_CASES):
                return
        self._probe(limit_s)

    def _run_cells(self, n_cells: int) -> None:
        ends_at = time.monotonic() + CELLS_TIMES * self._limits.all_s
        for _ in range(n_cells):
            self._session.cell(min(time.monotonic() + CELLS_TIMES * self._limits.one_s, ends_at))

    def _ready(self) -> float:
        """Wait until each is; the time that is left for the cases."""
        limit_s = TIMES_ALONE * self._exercise.run.wall_s + GRACE_S
        began = time.monotonic()
        if not self._session.ready(began + limit_s):
            raise WireError("a rank would not be forked, and need not be")
        return limit_s - (time.monotonic() - began)

    def _bound_memory(self, inputs: CaseInputs) -> str | None:
        """Bound the memory of every rank of a case and begin its record; or why that would be of no use."""
        for rank, witness in enumerate(self._session.witnesses[: n_ranks(self._exercise, inputs.case)]):
            inputs_bytes = bytes_in(part_of(inputs.tree, rank))
            if problem := witness.bound_memory(inputs_bytes, inputs.memory_limit_bytes, FRAMES_BYTES):
                return f"rank {rank}: {problem}"
        return None

    def _case(self, inputs: CaseInputs, deadline: float) -> tuple[Observation, bool]:
        """A case's run, and whether the ranks are there for another."""
        run, n = self._exercise.run, n_ranks(self._exercise, inputs.case)
        cluster = run.cluster(inputs.case) if run.cluster else Cluster()
        held: dict[str, int] = {}

        def read_memory(label: str) -> None:
            held[label] = max(held.get(label, 0), self._most_held(inputs, n))

        case, lend, blamed = case_to_tree(inputs.case), inputs.bounds_memory, None
        router = Router(
            self._session.channels[:n], cluster, deadline, run.wall_s + GRACE_S, read_memory if lend else None
        )
        try:
            parts = [RunCase(case, part_of(inputs.tree, rank), lend, rank, n) for rank in range(n)]
            self._session.case(parts, deadline)
            frames = router.run()
            if lend:
                self._found.readings.append(self._largest_reading(inputs, router, frames))
                self._found.readings += _readings_at_moments(inputs, figures(router.traffic()), held)
            return _observation(inputs, router, frames), True
        except RankTrouble as error:
            trouble, blamed = error.trouble, error.blamed
        except TimeoutError:
            trouble = Trouble("wall", f"it did not finish within {run.wall_s:g} s of wall time")
        except Closed:
            trouble = Trouble("died", "the process of a rank ended")
        except Exception as error:
            # Whatever a worker may send: reading it must end no more than its own exercise.
            trouble = Trouble("died", clean(f"what a rank sent back could not be read ({error})", 200))
        where = router.dismiss(DISMISS_S)
        if blamed is not None and where is not None:
            trouble = replace(trouble, where=where.get(blamed))
        return inputs.without_run(trouble), where is not None

    def _most_held(self, inputs: CaseInputs, n: int) -> int:
        """What the rank holds that holds the most, beyond its inputs; all of them have halted."""
        witnesses = self._session.witnesses[:n]
        return max(one.held_bytes(bytes_in(part_of(inputs.tree, rank))) for rank, one in enumerate(witnesses))

    def _largest_reading(self, inputs: CaseInputs, router: Router, frames: Sequence[Observed]) -> Reading:
        """The reading of the rank that has taken the most, whose memory is not that of its inputs and its messages."""
        readings = []
        for rank, frame in enumerate(frames):
            frames_bytes = min(router.frames_bytes(rank), FRAMES_BYTES)
            inputs_bytes = bytes_in(part_of(inputs.tree, rank))
            claimed_bytes = frame.measured.get("peak_bytes", 0.0)
            readings.append(self._session.witnesses[rank].reading(claimed_bytes, inputs_bytes + frames_bytes))
        return max(readings, key=lambda reading: reading.measured)

    def _probe(self, within_s: float) -> None:
        """Try the meters of every rank on work of a secret size; one that does not answer has counted nothing."""
        deadline = time.monotonic() + within_s
        for meter, n in self._cases.probes:
            for rank in range(len(self._session.channels)):
                try:
                    self._found.readings += self._session.probe(meter, n, deadline, rank)
                except Exception:
                    self._found.readings += probe_readings(meter, n, {})


def _readings_at_moments(
    inputs: CaseInputs, claimed: Mapping[str, float], held: Mapping[str, int]
) -> Iterator[Reading]:
    """Of every moment with a budget. One that no rank has come to has no figure, which the budget is not kept by."""
    for label, limit in inputs.moment_limits.items():
        key = at_moment("held_bytes", label)
        if label in held:
            yield Reading(key, claimed.get(key, 0.0), held[label], limit=limit, slack=HALTED_SLACK_BYTES)


def _observation(inputs: CaseInputs, router: Router, frames: Sequence[Observed]) -> Observation:
    # Ours count, whatever a rank claims of them.
    traffic = router.traffic()
    measured = of_ranks(without_moments(frame.measured) for frame in frames) | figures(traffic)
    got = [frame.got for frame in frames]
    back = [frame.back_of(part_of(inputs.tree, rank), inputs.bounds_memory) for rank, frame in enumerate(frames)]
    return Observation(
        inputs.case,
        inputs.tree,
        {"ranks": got},
        {"ranks": back},
        measured,
        held=held_of_ranks([(frame.measured, frame.held) for frame in frames]),
        moments=traffic.moments,
    )


def _words(error: Exception) -> str:
    return "its process ended" if isinstance(error, Closed) else clean(str(error), 100)
