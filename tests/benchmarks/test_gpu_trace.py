"""The recorded trace: cut to what lab 09 reads, and the lab's own functions read it; without kernels it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks import gpu_trace
from labkit.exercises.lab09.traces import TENSOR_CORE_MARKS
from labkit.material import lab09
from tests.exercises.harness import answers_in, solution_of

SHIFT_US = 4_429_096_580_391.75


def profiled_events() -> list[dict]:
    """The model's trace with the fields and the clock of a real one."""
    events = [dict(event) for event in lab09.load_trace().events]
    for event in events:
        if "ts" in event:
            event["ts"] += SHIFT_US
        if event.get("cat") == "kernel":
            event["args"] = {**event["args"], "registers per thread": 32, "grid": [1, 1, 1]}
    return events


def test_what_it_keeps_is_what_the_lab_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = lab09.load_trace()
    shipped = gpu_trace.shaped(profiled_events(), "NVIDIA H100", "2.13.0")
    assert {event["cat"] for event in shipped["traceEvents"]} <= set(gpu_trace.KEPT)
    assert all(set(event["args"]) <= set(gpu_trace.KEPT_ARGS) for event in shipped["traceEvents"])
    assert min(event["ts"] for event in shipped["traceEvents"]) == 0
    (tmp_path / "gpu_trace.json").write_text(json.dumps(shipped))
    monkeypatch.setattr(lab09, "SHIPPED", tmp_path / "gpu_trace.json")
    loaded = lab09.load_trace()
    assert "A real GPU" in loaded.origin and "NVIDIA H100" in loaded.origin and loaded.first_step == 2
    answers = answers_in("09-profile", solution_of("09-profile"))
    report = {
        trace.origin[:6]: answers["gpu_report"](answers["gpu_work"](trace.events, trace.first_step), TENSOR_CORE_MARKS)
        for trace in (model, loaded)
    }
    (of_model, of_loaded) = report.values()
    assert of_loaded["tensor_core_share"] == pytest.approx(of_model["tensor_core_share"])
    assert of_loaded["idle_us"] == pytest.approx(of_model["idle_us"], abs=1)


def test_a_trace_without_kernels_is_refused() -> None:
    without = [event for event in profiled_events() if event.get("cat") != "kernel"]
    with pytest.raises(RuntimeError, match="the profiler saw no kernel"):
        gpu_trace.shaped(without, "a GPU", "2.13.0")


@pytest.mark.gpu
def test_a_real_one() -> None:
    trace = gpu_trace.main([])
    answers = answers_in("09-profile", solution_of("09-profile"))
    work = answers["gpu_work"](trace["traceEvents"], trace["first_step"])
    report = answers["gpu_report"](work, TENSOR_CORE_MARKS)
    assert torch.cuda.get_device_name() in trace["origin"]
    assert len({event["args"]["stream"] for event in work}) >= 2
    assert 0 < report["tensor_core_share"] < 1 and report["idle_us"] > 0
