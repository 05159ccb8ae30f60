"""The Gantt chart: every span of the trace is a bar where it was, and a GPU profiler's events become spans."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from labkit import figures
from labkit.simdevice import Machine, Span, run_traced
from labkit.simdevice.run_traced import spans_of
from tests.figures.on_page import assert_every_text_is_on_the_page

SLOW = Machine(flops_per_s=2e9, to_device_bytes_per_s=1e8, to_host_bytes_per_s=1e8)


def products(n: int):
    def prepare(cuda, device):
        x = torch.zeros(64, 64).to(device)

        def program():
            y = x
            for _ in range(n):
                y = y @ x
            return y.cpu()

        return program

    return prepare


def test_it_shows_the_trace_that_it_is_given() -> None:
    traces = {f"{n} products": run_traced(products(n), SLOW, simulate=True).spans for n in (1, 3)}
    figure = figures.gantt(traces)
    for axes, (title, spans) in zip(figure.axes, traces.items(), strict=True):
        assert axes.get_title(loc="left").startswith(title)
        widths_ms = sorted(bar.get_width() for bar in axes.patches)
        assert widths_ms == pytest.approx(sorted(1e3 * (span.end_s - span.start_s) for span in spans))
        assert [label.get_text() for label in axes.get_yticklabels()] == ["default stream", "host"]
    assert len(figure.axes[0].patches) < len(figure.axes[1].patches)


def test_every_text_is_on_the_page() -> None:
    figure = figures.gantt({f"program {n}": run_traced(products(n), SLOW, simulate=True).spans for n in (1, 3, 40)})
    assert_every_text_is_on_the_page(figure)


def test_a_single_trace_and_an_empty_one() -> None:
    assert len(figures.gantt([Span(0, "mm", 0.0, 1e-3)]).axes) == 1
    assert len(figures.gantt({"some": [Span(0, "mm", 0.0, 1e-3)], "none": []}).axes) == 2
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.gantt({"none": []})


def test_a_program_is_measured_without_what_prepares_it() -> None:
    done = run_traced(products(2), SLOW, simulate=True)
    assert [span.name for span in done.spans if span.kind != "host waits"] == ["mm", "mm", "copy to host"]
    assert done.device_bytes == 3 * 64 * 64 * 4 and done.host_bytes == 64 * 64 * 4 and done.races == ()
    assert done.duration_s == pytest.approx(2 * 2 * 64**3 / 2e9 + 64 * 64 * 4 / 1e8, rel=0.1)


def test_the_events_of_a_profiler_become_spans() -> None:
    cuda, cpu = torch.autograd.DeviceType.CUDA, torch.autograd.DeviceType.CPU

    def event(name: str, start_us: float, stream: int, device=cuda, region: bool = False) -> SimpleNamespace:
        time_range = SimpleNamespace(start=start_us, end=start_us + 10)
        return SimpleNamespace(
            name=name,
            time_range=time_range,
            device_resource_id=stream,
            device_type=device,
            is_user_annotation=region,
        )

    spans = spans_of(
        [
            event("Memcpy DtoH (Device -> Pinned)", 40, 7),
            event("ampere_sgemm_128x64", 20, 23),
            event("aten::mm", 1, 0, cpu),
            event("Memcpy HtoD (Pinned -> Device)", 30, 7),
            event("Memset (Device)", 50, 13),
            event("Optimizer.step#SGD.step", 10, 7, region=True),
        ]
    )
    assert [(one.lane, one.kind) for one in spans] == [
        ("stream 1", "kernel"),
        ("default stream", "to device"),
        ("default stream", "to host"),
        ("stream 2", "kernel"),
    ]
    assert spans[0].start_s == pytest.approx(20e-6) and spans[0].end_s == pytest.approx(30e-6)


@pytest.mark.gpu
def test_a_gpu_s_default_stream_is_called_so_and_regions_are_no_kernels() -> None:
    def prepare(cuda, device):
        x, side = torch.zeros(64, 64, device=device), cuda.Stream()

        def program():
            with cuda.stream(side), torch.profiler.record_function("a region"):
                y = x @ x
            cuda.current_stream().wait_stream(side)
            return (y + x).cpu()

        return program

    spans = run_traced(prepare, SLOW, simulate=False).spans
    # A product may take several kernels.
    assert list(dict.fromkeys(span.lane for span in spans)) == ["stream 1", "default stream"]
    assert spans[-1].kind == "to host" and all("region" not in span.name for span in spans)
