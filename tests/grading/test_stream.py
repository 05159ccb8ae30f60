"""The stream of jobs: few in flight, trouble tried again alone, stopped in good order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from dataclasses import replace

import pytest

import grading.pipeline.stream as streams
from grading.isolation.faults import InfrastructureFault, LostUnderStudent
from grading.pipeline.failure import ungraded_by
from grading.pipeline.stream import run_all
from grading.supervisor.own_time import TookTooLong
from grading.supervisor.result import CellResult, ExerciseResult, SubmissionResult
from labkit.check.verdict import Verdict
from tests.grading.recorded_stream import WORKERS, Recorder


def test_only_a_few_jobs_are_ever_in_flight(monkeypatch) -> None:
    seen = Recorder(monkeypatch, lambda job: {"n": job})
    run_all(seen.stream, seen.feed(500))
    assert seen.told == {n: {"n": n} for n in range(500)}
    assert seen.most_ahead <= seen.stream.window <= 3 * WORKERS
    assert seen.n_opened == 1


def test_nothing_to_run_opens_no_executor(monkeypatch) -> None:
    seen = Recorder(monkeypatch, lambda job: {"n": job})
    run_all(seen.stream, iter(()))
    assert seen.n_opened == 0


def test_what_met_trouble_is_tried_again_alone(monkeypatch) -> None:
    tries = Counter()

    def run(job: int) -> dict:
        tries[job] += 1
        if job == 3 and tries[job] == 1:
            raise InfrastructureFault("once")
        if job == 5:
            raise MemoryError
        if job == 7:
            raise BrokenExecutor
        return {"n": job}

    seen = Recorder(monkeypatch, run)
    run_all(seen.stream, seen.feed(20))
    failed = {job: outcome for job, outcome in seen.told.items() if not isinstance(outcome, dict)}
    assert sorted(seen.told) == list(range(20))
    assert sorted(failed) == [5, 7] and tries[5] == tries[7] == 1 + streams.ALONE
    assert ungraded_by("a", failed[5]).outcome == "infrastructure"
    assert ungraded_by("a", failed[7]).outcome == "suspected"
    assert ungraded_by("a", LostUnderStudent("x")).outcome == "suspected"


def test_what_took_the_supervisor_too_long_is_not_tried_again(monkeypatch) -> None:
    tries = Counter()

    def run(job: int) -> dict:
        tries[job] += 1
        if job == 3:
            raise MemoryError if tries[job] == 1 else TookTooLong("too long")
        if job == 5:
            raise TookTooLong("too long")
        return {"n": job}

    seen = Recorder(monkeypatch, run)
    run_all(seen.stream, seen.feed(20))
    assert sorted(seen.told) == list(range(20))
    assert (tries[3], tries[5]) == (2, 1)
    assert {ungraded_by("a", seen.told[job]).outcome for job in (3, 5)} == {"suspected"}


def test_what_others_may_have_slowed_down_runs_again_alone_before_it_counts(monkeypatch) -> None:
    tries, running, beside = Counter(), Counter(), []

    def run(job: int) -> dict:
        tries[job] += 1
        running[job] = 1
        if tries[job] == 2:
            beside.append(running.total() - 1)
        running[job] = 0
        # The fifth is in time once it has the machine to itself, the seventh never is.
        return {"n": job, "late": job == 7 or (job == 5 and tries[job] == 1)}

    seen = Recorder(monkeypatch, run)
    late = replace(seen.stream, owes_to_others=lambda result: result["late"])
    run_all(late, seen.feed(20))
    assert seen.told == {n: {"n": n, "late": n == 7} for n in range(20)}
    assert tries == {n: 2 if n in (5, 7) else 1 for n in range(20)} and beside == [0, 0]
    # Nobody ran beside it in the first place.
    tries.clear()
    seen.told.clear()
    run_all(replace(late, workers=1), seen.feed(9))
    assert set(tries.values()) == {1}


@pytest.mark.parametrize(
    ("outcome", "skipped", "waited_s", "again"),
    [
        ("limit", False, 3.0, True),
        ("suspected", False, 3.0, True),
        # A cell that an answer needs.
        ("failed", True, 3.0, True),
        ("failed", False, 3.0, False),
        ("passed", False, 3.0, False),
        # It slept or computed: nobody was in its way.
        ("limit", False, 0.2, False),
        # The kernel does not say.
        ("limit", False, None, True),
    ],
)
def test_who_may_owe_a_result_to_others(outcome: str, skipped: bool, waited_s: float | None, again: bool) -> None:
    found = ExerciseResult(Verdict("00-warm-up", outcome, 0.0, "", (), None), None)
    cells = {"a": CellResult(not skipped, None, "", skipped=skipped)}
    usage = {"wall_s": 20.0, "cpu_s": 9.0} | ({} if waited_s is None else {"waited_s": waited_s})
    result = SubmissionResult("key", "00", "ada", {"00-warm-up": found}, cells, (), usage=usage)
    assert result.owes_to_others == again


def test_an_executor_that_breaks_while_it_is_idle_costs_nobody_a_try(monkeypatch) -> None:
    tries = Counter()

    def run(job: int) -> dict:
        tries[job] += 1
        if tries[job] <= 2:
            raise MemoryError
        return {"n": job}

    class Fleeting:
        """Takes two jobs, if they are to run alone, and no more."""

        def __init__(self, executor: Executor, workers: int) -> None:
            self.executor, self.left = executor, 2 if workers == 1 else 1000

        def submit(self, *call: object) -> Future:
            self.left -= 1
            if self.left < 0:
                raise BrokenExecutor
            return self.executor.submit(*call)

    seen = Recorder(monkeypatch, run)
    opened = seen.open

    @contextmanager
    def fleeting(workers: int, *rest: object) -> Iterator[Fleeting]:
        with opened(workers, *rest) as executor:
            yield Fleeting(executor, workers)

    monkeypatch.setattr(streams, "open_executor", fleeting)
    run_all(seen.stream, seen.feed(3))
    assert seen.told == {n: {"n": n} for n in range(3)}
    assert set(tries.values()) == {1 + streams.ALONE}


def test_a_stopped_stream_finishes_what_runs_and_begins_nothing(monkeypatch) -> None:
    def run(job: int) -> dict:
        seen.stop = job == 4 or seen.stop
        return {"n": job}

    seen = Recorder(monkeypatch, run)
    run_all(seen.stream, seen.feed(200))
    assert 4 in seen.told and len(seen.told) <= 4 + 1 + seen.stream.window
