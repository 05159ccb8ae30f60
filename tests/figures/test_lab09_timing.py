"""The figures of the ways of timing and of the allocator show what they are given, and all of it is on the page."""

from __future__ import annotations

import pytest
import torch

from labkit import figures
from labkit.simdevice import Machine, probe_timing
from labkit.spec import MiB
from tests.figures.on_page import assert_every_text_is_on_the_page

SLOW = Machine(memory_bytes_per_s=1e9, cache_bytes=2**18, cache_bytes_per_s=4e9, first_call_s=6e-4, launch_s=3e-5)


def one_function(device: torch.device):
    x = torch.ones(50_000).to(device)
    return lambda: x.neg_()


def by_clock(fn, cuda, device, now_s) -> float:
    before_s = now_s()
    fn()
    return 1e3 * (now_s() - before_s)


def by_events(fn, cuda, device, now_s) -> float:
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    fn()
    end.record()
    cuda.synchronize()
    return start.elapsed_time(end)


def test_each_method_has_its_timeline_with_its_reading() -> None:
    probes = {
        "clock": probe_timing(by_clock, one_function, SLOW),
        "events": probe_timing(by_events, one_function, SLOW),
    }
    figure = figures.timing_methods(probes, true_ms=0.4)
    clock, events = figure.axes
    assert clock.get_title(loc="left") == "clock: reads 0.63 ms"
    assert events.get_title(loc="left") == "events: reads 1.03 ms"
    assert "0.4 ms by the device's log" in events.get_xlabel()
    for axes, one in ((clock, probes["clock"]), (events, probes["events"])):
        widths_ms = [bar.get_width() for bar in axes.patches]
        for span in (*one.spans, *one.launches):
            assert any(width == pytest.approx(1e3 * (span.end_s - span.start_s)) for width in widths_ms), span
    (marks,) = [line for line in events.lines if len(line.get_xdata()) == 2]
    assert marks.get_xdata()[1] - marks.get_xdata()[0] == pytest.approx(probes["events"].read_ms)


def test_the_trace_shows_the_students_rows_and_the_drivers_calls() -> None:
    rows = [(6 * MiB, 20 * MiB, 1, 0), (0, 20 * MiB, 1, 0), (0, 0, 1, 1)]
    figure = figures.allocator_trace({"mine": rows, "other": [(row[0], 30 * MiB, 0, 0) for row in rows]})
    mine, _ = figure.axes
    assert mine.get_title(loc="left") == "mine: at most 6.00 MiB allocated, 20.00 MiB reserved"
    reserved, malloc, free = mine.lines
    assert list(reserved.get_ydata()) == [20, 20, 0]
    assert (list(malloc.get_xdata()), list(free.get_xdata())) == ([0], [2])
    assert [text.get_text() for text in figure.legends[0].get_texts()][-2:] == ["cudaMalloc", "cudaFree"]


def test_many_calls_of_the_driver_are_not_marked_and_a_small_difference_is_magnified() -> None:
    rows = [((900 + at) * MiB, (1000 + at) * MiB, 5 + at, 0) for at in range(100)]
    (axes,) = figures.allocator_trace({"long": rows}).axes
    assert len(axes.lines) == 1 and axes.get_ylim()[0] > 0.9  # GB


def test_segments_are_drawn_with_their_blocks() -> None:
    trace = [("malloc", 0, 6 * MiB), ("malloc", 1, 100)]
    (axes,) = figures.segment_map(trace).axes
    assert [round(bar.get_width(), 3) for bar in axes.patches] == [6, 14, 0.0, 2.0]
    assert axes.get_title(loc="left") == "6.00 MiB allocated, 22.00 MiB reserved"
    (axes,) = figures.segment_map([*trace, ("free", 0, 0), ("empty_cache", 0, 0), ("malloc", 0, 200)]).axes
    assert axes.get_title(loc="left") == "1.0 KiB allocated, 2.00 MiB reserved"


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.timing_methods({}, 1.0),
        lambda: figures.allocator_trace({"none": []}),
        lambda: figures.segment_map([]),
    ],
)
def test_nothing_to_draw_is_said(draw) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        draw()


def test_every_text_is_on_the_page() -> None:
    figure = figures.timing_methods({f"method {n}": probe_timing(by_events, one_function, SLOW) for n in range(4)}, 0.4)
    assert_every_text_is_on_the_page(figure)
