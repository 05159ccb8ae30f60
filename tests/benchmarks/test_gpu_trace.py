"""The recorded trace: cut to what lab 09 reads, and the lab's own functions read it; without kernels it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks import gpu_trace
from labkit.exercises.lab09 import traces
from labkit.material import lab09
from tests.exercises.harness import answers_in, solution_of

ROOT = Path(__file__).resolve().parents[2]
SHIFT_US = 4_429_096_580_391.75


def modelled_events() -> list[dict]:
    """Five steps as the exercise's model of a GPU makes them."""
    steps = [traces.step_ops(2, warm=number >= 2, reduces=True) for number in range(5)]
    scales = [1.0] * sum(map(len, steps))
    return traces.as_events(traces.record(steps, scales, 20.0, waits=True))


def profiled_events() -> list[dict]:
    """The same with the fields and the clock of a real profile."""
    events = [dict(event) for event in modelled_events()]
    for event in events:
        if "ts" in event:
            event["ts"] += SHIFT_US
        if event.get("cat") == "kernel":
            event["args"] = {**event["args"], "registers per thread": 32, "grid": [1, 1, 1]}
    return events


def report_of(events: list[dict], first_step: int) -> dict:
    answers = answers_in("09-profile", solution_of("09-profile"))
    return answers["gpu_report"](answers["gpu_work"](events, first_step), traces.TENSOR_CORE_MARKS)


def test_what_it_keeps_is_what_the_lab_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = gpu_trace.shaped(profiled_events(), "NVIDIA H100", "2.13.0")
    assert {event["cat"] for event in trace["traceEvents"]} <= set(gpu_trace.KEPT)
    assert all(set(event["args"]) <= set(gpu_trace.KEPT_ARGS) for event in trace["traceEvents"])
    assert min(event["ts"] for event in trace["traceEvents"]) == 0
    (tmp_path / "gpu_trace.json.gz").write_bytes(gpu_trace.packed(trace))
    monkeypatch.setattr(lab09, "SHIPPED", tmp_path / "gpu_trace.json.gz")
    loaded = lab09.load_trace()
    assert "A real GPU" in loaded.origin and "NVIDIA H100" in loaded.origin and loaded.first_step == 2
    of_model, of_loaded = report_of(modelled_events(), 2), report_of(loaded.events, loaded.first_step)
    assert of_loaded["tensor_core_share"] == pytest.approx(of_model["tensor_core_share"])
    assert of_loaded["idle_us"] == pytest.approx(of_model["idle_us"], abs=1)


def test_the_result_says_what_is_in_the_shipped_trace() -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "gpu_trace.json").read_text(encoding="utf-8"))
    shipped = lab09.load_trace()
    trace = {"origin": shipped.origin, "first_step": shipped.first_step, "traceEvents": shipped.events}
    assert kept["result"] == gpu_trace.summary(trace)
    assert kept["result"]["origin"].count(kept["machine"]["gpus"][0].split(",")[0]) == 1


def test_a_trace_without_kernels_is_refused() -> None:
    without = [event for event in profiled_events() if event.get("cat") != "kernel"]
    with pytest.raises(RuntimeError, match="the profiler saw no kernel"):
        gpu_trace.shaped(without, "a GPU", "2.13.0")


@pytest.mark.gpu
def test_a_real_one() -> None:
    trace = gpu_trace.shaped(gpu_trace.recorded_events(), torch.cuda.get_device_name(), torch.__version__)
    work = answers_in("09-profile", solution_of("09-profile"))["gpu_work"](trace["traceEvents"], trace["first_step"])
    report = report_of(trace["traceEvents"], trace["first_step"])
    assert torch.cuda.get_device_name() in trace["origin"]
    assert len({event["args"]["stream"] for event in work}) >= 2
    assert 0 < report["tensor_core_share"] < 1 and report["idle_us"] > 0
