"""Lab 09: the figures that its text quotes, and what the judge makes of results that nobody would return."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest
import torch

from labkit import exercises
from labkit.check.judge import judge
from labkit.exercises.lab09.allocator import AllocationTrace, trace_inputs
from labkit.exercises.lab09.bench import Timed
from labkit.observe import gather_answers, make_inputs, observe
from labkit.oracles import oracle_of
from labkit.oracles.lab09.allocator import true_factor
from labkit.oracles.lab09.bench import RTOL, logged_ms, true_ms, warm_ms
from labkit.simdevice import Machine, SimDevice
from labkit.spec import CaseRun, MiB, Observation
from tests.exercises.harness import answers_in, public_verdict, solution_of

IDS = ("09-bench", "09-events", "09-allocator")


def observed(exercise_id: str, case_number: int = -1) -> Observation:
    """The solution on a public case."""
    exercise = exercises.find(exercise_id)
    answers = gather_answers(exercise, answers_in(exercise_id, solution_of(exercise_id)))
    case = exercise.public[case_number]
    return observe(exercise, answers, case, make_inputs(exercise, case, 1))


def verdict_on(exercise_id: str, run: Observation):
    return judge(exercises.find(exercise_id), oracle_of(exercise_id), [run])


def test_the_product_that_is_too_fast() -> None:
    """5 microseconds for 0.27 GFLOP look like 54 TFLOP/s, on a device that can do 2."""
    n = 512
    with SimDevice(Machine(flops_per_s=2e12)) as sim:
        a = torch.ones(n, n).to(sim.device)
        sim.synchronize()
        before_s = sim.now_s
        a @ a
        launch_s = sim.now_s - before_s
        sim.synchronize()
        whole_s = sim.now_s - before_s
    assert launch_s == pytest.approx(5e-6) and round(2 * n**3 / launch_s / 1e12) == 54
    assert 2 * n**3 / whole_s < 2e12


def test_the_quoted_arithmetic() -> None:
    cold_s, warm_s = 1e6 / 100e9, 1e6 / 400e9
    assert (cold_s, warm_s) == pytest.approx((10e-6, 2.5e-6))
    times_us = [10.0] * 49 + [20_000.0]
    assert round(statistics.mean(times_us)) == 410 and statistics.median(times_us) == 10
    allocated_gb, reserved_gb = 6.42, 7.09
    assert round(reserved_gb - allocated_gb, 2) == 0.67 and round(reserved_gb / allocated_gb, 2) == 1.10


def test_the_answer_to_the_prediction_about_the_allocator() -> None:
    replay_trace = answers_in("09-allocator", solution_of("09-allocator"))["replay_trace"]
    trace = [("malloc", ticket, 6 * MiB) for ticket in range(3)]
    trace += [("free", 0, 0), ("free", 2, 0), ("malloc", 3, 9 * MiB)]
    assert replay_trace(trace)[-1] == (15 * MiB, 40 * MiB, 2, 0)


@pytest.mark.parametrize("case", [Timed(n_repeats=60, jitter=0.8), Timed("product", n=20, n_repeats=60, jitter=0.8)])
def test_mean_minimum_and_warm_cache_are_well_outside_what_is_accepted(case: Timed) -> None:
    wanted_ms = true_ms(case)
    times_ms = logged_ms(case, cold=True)
    mistaken = [statistics.mean(times_ms), min(times_ms)] + [warm_ms(case)] * (case.kind == "in place")
    assert all(abs(ms / wanted_ms - 1) > 2 * RTOL for ms in mistaken)


def test_a_mixed_trace_has_a_segment_to_give_back_and_never_frees_twice() -> None:
    for seed in range(20):
        tree = trace_inputs(AllocationTrace(n_events=80), torch.Generator().manual_seed(seed))
        live = set()
        for kind, ticket, n_bytes in tree["trace"]:
            if kind == "malloc":
                assert ticket not in live and n_bytes >= 1
                live.add(ticket)
            elif kind == "free":
                live.remove(ticket)
        assert tree["trace"][-1][0] == "empty_cache"
        assert {event[1] for event in tree["step"] if event[0] == "malloc"} == {
            event[1] for event in tree["step"] if event[0] == "free"
        }


def test_the_set_up_decides_what_a_step_costs() -> None:
    case = AllocationTrace(n_events=0)
    for seed in range(20):
        tree = trace_inputs(case, torch.Generator().manual_seed(seed))
        assert true_factor(CaseRun(case, tree), set_up=False) > true_factor(CaseRun(case, tree)) > 1


ABSURD = (None, [], "x", math.nan, -1, torch.full((3,), torch.nan), [[None] * 4], [{}], {}, 10**30, True)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("exercise_id", IDS)
def test_what_nobody_would_return_is_no_value_and_no_crash(exercise_id: str) -> None:
    run = observed(exercise_id)
    assert verdict_on(exercise_id, run).passed
    for absurd in ABSURD:
        for key in run.got:
            if absurd != run.got[key] if not isinstance(absurd, torch.Tensor) else True:
                verdict = verdict_on(exercise_id, replace(run, got={**run.got, key: absurd}))
                assert verdict.score == 0, (key, absurd)
        assert verdict_on(exercise_id, replace(run, got=absurd)).score == 0


def test_times_that_were_read_are_not_enough_where_the_work_was_not_done() -> None:
    run = observed("09-events")
    without = [one for one in run.got["commands"] if one["kind"] != "kernel"]
    assert "call each job once" in str(verdict_on("09-events", replace(run, got={**run.got, "commands": without})).rows)


def test_the_courses_own_bench_and_allocator_are_no_answers() -> None:
    lazy = "def bench(fn, cuda, device, now_s, n_repeats):\n    return labkit.bench(fn, cuda).median_ms\n"
    assert "writing it yourself" in str(public_verdict("09-bench", lazy).rows)
    lazy = (
        solution_of("09-allocator")
        + "\n\ndef slow_down(*args):\n    return labkit.simdevice.CachingAllocator().empty_cache()\n"
    )
    assert "writing it yourself" in str(public_verdict("09-allocator", lazy).rows)
