"""The file for Perfetto is a trace in its format: every row named, spans in microseconds, none across another."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch

from labkit.simdevice import SimDevice, Span, save_trace


@pytest.fixture
def sim() -> SimDevice:
    with SimDevice() as sim:
        x, host = torch.ones(500, 500).to(sim.device), torch.ones(500, 500).pin_memory()
        with sim.stream(sim.Stream()):
            y = host.to(sim.device, non_blocking=True)
        x = x @ x
        sim.current_stream().wait_stream(sim.default_stream())
        (x.sum() + 1).item()
        sim.synchronize()
        y.cpu()
    return sim


def saved(spans: tuple[Span, ...], tmp_path: Path) -> list[dict]:
    save_trace(spans, tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text())
    assert set(told) == {"traceEvents"}
    return told["traceEvents"]


def test_every_span_is_an_event_of_its_row_in_microseconds(sim: SimDevice, tmp_path: Path) -> None:
    events = saved(sim.trace, tmp_path)
    names = {one["tid"]: one["args"]["name"] for one in events if one["ph"] == "M"}
    drawn = [one for one in events if one["ph"] == "X"]
    assert set(names.values()) == {"host", "default stream", "stream 1"} and len(drawn) == len(sim.trace)
    for event, span in zip(drawn, sim.trace, strict=True):
        assert (names[event["tid"]], event["name"], event["cat"]) == (span.lane, span.name, span.kind)
        assert event["ts"] == pytest.approx(1e6 * span.start_s) and event["ts"] >= 0
        assert event["dur"] == pytest.approx(1e6 * (span.end_s - span.start_s)) and event["dur"] > 0
        assert {"ph", "pid", "tid", "ts", "dur", "name"} <= event.keys() and isinstance(event["tid"], int)


def test_no_span_crosses_another_in_its_row(sim: SimDevice, tmp_path: Path) -> None:
    """Perfetto drops spans that overlap without lying one in the other."""
    rows: dict[int, list[tuple[float, float]]] = {}
    for event in saved(sim.trace, tmp_path):
        if event["ph"] == "X":
            rows.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(rows) == 3
    for spans in rows.values():
        spans.sort()
        assert all(after[0] >= before[1] - 1e-6 for before, after in itertools.pairwise(spans))


def test_nothing_ran_is_a_trace_as_well(tmp_path: Path) -> None:
    assert saved((), tmp_path) == []
