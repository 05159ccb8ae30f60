"""The figure of lab 08's frozen layers: what the runs marked is on every curve, unless there is too much of it."""

from __future__ import annotations

import pytest
import torch

from labkit import figures, track_memory
from labkit.meters.memory import MemoryProfile


def profile(n_layers: int, marks: tuple[str, ...]) -> MemoryProfile:
    x = torch.ones(64)
    with track_memory(batch=[x]) as found:
        found.mark("start")
        for label in marks:
            kept = [x + 1 for _ in range(n_layers)]
            found.mark(label)
        del kept
        x.sum()
    return found


def test_a_mark_is_on_every_curve() -> None:
    profiles = {"short": profile(4, ("end of the forward pass",)), "long": profile(9, ("end of the forward pass",))}
    figure = figures.memory_timeline(profiles)
    (axes,) = figure.axes
    (drawn,) = (line for line in axes.lines if line.get_label() == "end of the forward pass")
    assert "start" not in [line.get_label() for line in axes.lines]
    for found, x, y in zip(profiles.values(), drawn.get_xdata(), drawn.get_ydata(), strict=True):
        ((_, index),) = found.marks[1:]
        curve = found.tracker.curve
        assert x == pytest.approx(100 * index / (len(curve) - 1))
        assert y * 1024 == pytest.approx(curve[index])
    figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    assert figure.bbox.padded(2).containsy(legend.y0)


def test_the_steps_of_a_run_are_not_drawn() -> None:
    steps = profile(2, tuple(map(str, range(1, 9))))
    (axes,) = figures.memory_timeline({"run": steps}).axes
    assert not {line.get_label() for line in axes.lines} & set("12345678")
