"""Lab 09: the model's trace has the form and the order of a real one, and the figures that the notebook quotes."""

from __future__ import annotations

import itertools

import pytest
import torch

from labkit.exercises.lab09 import traces
from labkit.exercises.lab09.profile import ON_DEVICE, Session, identity, recording_of, session_inputs, steady_events
from labkit.material import lab09
from labkit.oracles.lab09.traces import idle_us, share, true_work, window_us, without_overlap
from labkit.spec import CaseRun
from tests.exercises.harness import answers_in, solution_of

LAGS = Session()
STARVES = Session(n_cold=1, launch_us=40.0, waits=True)


def one_generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


@pytest.mark.parametrize("case", [LAGS, STARVES])
def test_the_device_never_runs_ahead_and_each_stream_runs_in_order(case: Session) -> None:
    work = recording_of(case, session_inputs(case, one_generator())).work
    assert all(one.launch_us + one.launch_took_us < one.start_us < one.end_us for one in work)
    assert len({one.correlation for one in work}) == len(work)
    for stream in {one.op.stream for one in work}:
        mine = [one for one in work if one.op.stream == stream]
        assert all(earlier.end_us <= later.start_us for earlier, later in itertools.pairwise(mine))
    assert all(8 * time == int(8 * time) for one in work for time in (one.start_us, one.end_us))


def test_the_cases_have_the_traps_that_the_hints_are_about() -> None:
    """The device lags behind its step, streams overlap, kernels come from autograd's thread and from Triton."""
    tree = session_inputs(LAGS, one_generator())
    recording = recording_of(LAGS, tree)
    ends = [one.start_us > recording.steps[one.step][1] for one in recording.work]
    assert any(ends) and not all(ends)
    assert {one.op.thread for one in recording.work} == {traces.MAIN_THREAD, traces.AUTOGRAD_THREAD}
    calls = {event["cat"] for event in traces.as_events(recording) if event.get("cat", "").startswith("cuda")}
    assert calls == {"cuda_runtime", "cuda_driver"}
    events = steady_events(LAGS, tree)
    assert idle_us(events) - without_overlap(events) > 50
    tree = session_inputs(STARVES, one_generator())
    assert idle_us(steady_events(STARVES, tree)) > 0.15 * window_us(steady_events(STARVES, tree))
    assert len(true_work(CaseRun(STARVES, tree))) == 2 * len(traces.step_ops(2, warm=True, reduces=True))


def test_the_quoted_figures_of_the_shipped_trace() -> None:
    trace = lab09.load_trace()
    assert trace.origin.startswith("A real GPU: 5 training steps of a transformer") and "NVIDIA H200" in trace.origin
    answers = answers_in("09-profile", solution_of("09-profile"))
    work = answers["gpu_work"](trace.events, trace.first_step)
    report = answers["gpu_report"](work, traces.TENSOR_CORE_MARKS)
    assert report["idle_us"] / window_us(work) == pytest.approx(0.17, abs=0.005)
    assert report["tensor_core_share"] == pytest.approx(0.05, abs=0.005)
    heads, total_us = report["kernels"][:3], sum(row[2] for row in report["kernels"])
    assert [calls for _, calls, _ in heads] == [3, 3, 3] and all(
        "f32" in name or "sgemm" in name for name, _, _ in heads
    )
    assert sum(row[2] for row in heads) / total_us == pytest.approx(0.75, abs=0.005)
    steps = [
        event["dur"] for event in trace.events if "ProfilerStep" in event["name"] and event["cat"] == "user_annotation"
    ]
    assert all(24_000 < step_us < 27_000 for step_us in steps[trace.first_step :])
    copies = [event for event in work if event["args"]["stream"] == 13]
    assert len(copies) == 3 and all("HtoD" in copy["name"] and 3.5 < copy["dur"] < 4 for copy in copies)
    assert {event["args"]["stream"] for event in work} == {traces.COMPUTE, 13}
    assert not any("nccl" in event["name"] for event in work)


def test_the_steady_part_has_no_tuning_and_nothing_of_the_host() -> None:
    events = steady_events(LAGS, session_inputs(LAGS, one_generator()))
    assert {event["cat"] for event in events} == set(ON_DEVICE)
    assert traces.TUNING not in {event["name"] for event in events}
    assert 0 < share(CaseRun(LAGS, session_inputs(LAGS, one_generator()))) < 1
    assert identity(events[0]) == [events[0]["cat"], events[0]["name"], events[0]["ts"]] and identity("x") == "x"
