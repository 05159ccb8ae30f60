"""Lab 09's charts of overlap and of waits: the student's own numbers, and every wait where it was."""

from __future__ import annotations

import pytest
import torch

from labkit import figures
from labkit.figures.overlap import CAUSES, cause_of
from labkit.simdevice import Machine, Span, run_traced


def asking(cuda, device):
    x = torch.ones(64, 64).to(device)
    host = torch.ones(64, 64)

    def program():
        total = (x @ x).sum().item()
        picked = x[x > 0]
        return total, picked, host.to(device)

    return program


def test_the_gain_is_the_students_formula_and_runs() -> None:
    figure = figures.overlap_gain({0.5: 1.4, 1.0: 1.8, 2.0: 1.3}, {1.0: 1.75})
    line, points = figure.axes[0].lines[:2]
    assert list(line.get_xdata()) == [0.5, 1.0, 2.0] and list(line.get_ydata()) == [1.4, 1.8, 1.3]
    assert list(points.get_xdata()) == [1.0] and list(points.get_ydata()) == [1.75]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1"]
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.overlap_gain({}, {1.0: 1.0})


def test_every_wait_is_drawn_with_its_cause() -> None:
    run = run_traced(asking, Machine(), simulate=True)
    waits = [span for span in run.spans if span.kind == "host waits"]
    assert [cause_of(span) for span in waits] == [".item(), float(), if", "index by a mask", "copy that blocks"]
    figure = figures.host_waits({"mine": run.spans, "none": ()})
    axes = figure.axes[0]
    length_us = 1e6 * (max(span.end_s for span in run.spans) - min(span.start_s for span in run.spans))
    assert axes.get_title(loc="left").startswith(f"mine: {length_us:,.0f} µs, 3 waits of the host")
    drawn = [bar for bar in axes.patches if bar.get_y() < 0.5]
    assert [bar.get_width() for bar in drawn] == pytest.approx([1e6 * (one.end_s - one.start_s) for one in waits])
    assert len(axes.patches) == len(run.spans)
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert labels == {*map(cause_of, waits), "the device works"}
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.host_waits({"none": ()})


def test_a_plain_synchronize_has_a_cause_of_its_own() -> None:
    assert cause_of(Span(-1, "synchronize", 0.0, 1.0, "host waits")) == "synchronize"
    assert set(CAUSES) == {".item(), float(), if", "index by a mask", "copy that blocks", "synchronize"}
