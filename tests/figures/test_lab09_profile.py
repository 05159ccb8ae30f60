"""Lab 09's charts of a trace: every event a bar where it was, the table's own numbers, and names that fit."""

from __future__ import annotations

import pytest

from labkit import figures
from labkit.exercises.lab09 import traces
from labkit.figures.profile_trace import LONGEST_NAME, short_name

REPORT = {
    "kernels": [(traces.GEMM, 3, 70.0), (traces.NORM, 2, 20.0), (traces.ADD, 4, 8.0), (traces.GELU, 1, 2.0)],
    "idle_us": 11.0,
    "tensor_core_share": 0.7,
}


def test_the_bars_are_the_rows_of_the_table() -> None:
    figure = figures.kernel_bars(REPORT, traces.TENSOR_CORE_MARKS, n_rows=2)
    axes = figure.axes[0]
    assert [bar.get_width() for bar in axes.patches] == [70.0, 20.0, 10.0, 11.0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["3 x " + short_name(traces.GEMM), "2 x vectorized_layer_norm_kernel", "2 more kernels", "idle"]
    colours = [bar.get_facecolor() for bar in axes.patches]
    assert colours[0] != colours[1] == colours[2] != colours[3]
    assert figure.legends[0].get_texts()[0].get_text().endswith("70% of the kernels' time")
    with pytest.raises(ValueError, match="the table of kernels is empty"):
        figures.kernel_bars({**REPORT, "kernels": []}, ())


def test_the_timeline_has_each_event_in_the_row_of_its_stream() -> None:
    ops = traces.step_ops(1, warm=True, reduces=True)
    recording = traces.record([ops], [1.0] * len(ops), 8.0, waits=False)
    events = [one for one in traces.as_events(recording) if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    axes = figures.device_timeline(events, "one step").axes[0]
    first_us = min(event["ts"] for event in events)
    rows = {7: 0, 20: 1, 24: 2}
    wanted = {(rows[e["args"]["stream"]], round(e["ts"] - first_us, 6), round(e["dur"], 6)) for e in events}
    drawn = {
        (round(bar.get_y() + bar.get_height() / 2), round(bar.get_x() * 1e3, 6), round(bar.get_width() * 1e3, 6))
        for bar in axes.patches
    }
    assert drawn == wanted
    assert [label.get_text() for label in axes.get_yticklabels()] == ["stream 7", "stream 20", "stream 24"]


def test_a_short_copy_is_wide_enough_to_be_seen() -> None:
    kernel = {"cat": "kernel", "name": "k", "ts": 0.0, "dur": 1e5, "args": {"stream": 7}}
    copies = [
        {"cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": at, "dur": 2.0, "args": {"stream": 13}}
        for at in (5e4, 99_990)
    ]
    bars = figures.device_timeline([kernel, *copies]).axes[0].patches
    assert [round(bar.get_width() * 1e3, 3) for bar in bars if bar.get_width() < 50] == [250.0, 10.0]


def test_names_are_cut_to_what_a_reader_needs() -> None:
    assert short_name(traces.ATTENTION) == "flash_fwd_kernel"
    assert short_name(traces.ADD) == "vectorized_elementwise_kernel CUDAFun…"
    assert short_name("Memcpy HtoD (Pinned -> Device)") == "Memcpy HtoD (Pinned -> Device)"
    cutlass = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(cutlass_80_simt_sgemm::Params)"
    assert short_name(cutlass) == "cutlass_80_simt_sgemm_128x256_8x4_nt_…"
    assert short_name(traces.REDUCE) == "ncclDevKernel_AllReduce_Sum_bf16_RING…"
    assert all(len(short_name(name)) <= LONGEST_NAME for name in (traces.GEMM, traces.BACK_GEMM, traces.TUNING))
