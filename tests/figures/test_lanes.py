"""The timelines of labs 05, 07, 09, 15, 16 and 18: one drawing, one colour for computing, one for sending."""

from __future__ import annotations

from importlib import import_module

import pytest
from matplotlib.colors import to_rgb

from labkit import figures
from labkit.exercises.lab15.ddp import Job
from labkit.exercises.lab16.prefetch import gathers_when_needed
from labkit.figures.lanes import COMPUTE, COMPUTE_BACK, TRANSFER, TRANSFER_BACK, Bar, Panel, timeline
from labkit.material.lab15 import Timeline
from labkit.material.lab16_timeline import UnitSpans
from labkit.pipeline import Action, Costs, run_schedule
from labkit.simdevice import Span

# Functions of the same names stand before these modules.
gantt, ddp, sharded_step = (import_module(f"labkit.figures.{name}") for name in ("gantt", "ddp", "sharded_step"))


def colours(figure) -> dict[str, tuple[float, ...]]:
    """Of the legend, by text."""
    (legend,) = figure.legends
    patches = [patch.get_facecolor()[:3] for patch in legend.get_patches()]
    return dict(zip([text.get_text() for text in legend.get_texts()], patches, strict=True))


def test_the_labs_mean_the_same_by_a_colour() -> None:
    trace = [Span(0, "mm", 0.0, 1.0), Span(1, "in", 0.0, 1.0, "to device"), Span(1, "out", 1.0, 2.0, "to host")]
    order = [[Action(kind, 0, 0) for kind in "FB"]]
    found = {
        "gantt": colours(figures.gantt(trace)),
        "ddp": colours(figures.ddp_timeline({"one": Timeline(((0, 1),), ((1, 2, 8),), 1, 2)})),
        "fsdp": colours(figures.fsdp_timeline(UnitSpans((("forward", 0, 1),), (("all_gather", 1, 2),), 2))),
        "step": colours(figures.sharded_step()),
        "pipeline": colours(figures.pipeline_chart(run_schedule(order, Costs.equal(1)))),
    }
    computing = [("gantt", "kernels"), ("ddp", "backward pass of a block"), ("fsdp", "forward")]
    computing += [("step", "forward pass"), ("pipeline", "forward")]
    assert {found[name][text] for name, text in computing} == {to_rgb(COMPUTE)}
    back = [("fsdp", "backward"), ("step", "backward pass"), ("pipeline", "backward")]
    assert {found[name][text] for name, text in back} == {to_rgb(COMPUTE_BACK)}
    sending = [("gantt", "copies to the device"), ("ddp", "all-reduce"), ("fsdp", "all-gather")]
    assert {found[name][text] for name, text in [*sending, ("step", "gather a layer")]} == {to_rgb(TRANSFER)}
    out = [("gantt", "copies to the host"), ("fsdp", "reduce-scatter"), ("step", "reduce its gradient")]
    assert {found[name][text] for name, text in out} == {to_rgb(TRANSFER_BACK)}


def test_bars_marks_and_what_is_kept() -> None:
    panel = Panel(
        "one", ("GPU", "network"), (Bar(0, 1, 3, COMPUTE, "mm"), Bar(1, 0, 1, TRANSFER)), 2.0, ((0, 1), (1, 2)), "kept"
    )
    other = Panel("other", ("GPU",), (Bar(0, 0, 4, COMPUTE),), kept=((0, 4),), kept_name="kept")
    figure = timeline([panel, other], {"computes": COMPUTE}, "ms")
    first, second = figure.axes
    assert [(bar.get_x(), bar.get_width()) for bar in first.patches] == [(1, 2), (0, 1)]
    assert list(first.lines[0].get_xdata()) == [2, 2]
    assert [text.get_text() for text in first.get_yticklabels()] == ["GPU", "network", "kept"]
    tall = [
        max(y) - min(y)
        for y in ([y for _, y in axes.collections[0].get_paths()[0].vertices] for axes in (first, second))
    ]
    assert tall == pytest.approx([0.36, 0.72]), "the areas of all panels have one scale"
    assert second.get_xlim()[1] == pytest.approx(4.08)


def test_batches_in_use_are_counted_from_their_copies_to_the_end_of_their_kernels() -> None:
    copies = [Span(1, "in", 0.0, 1.0, "to device"), Span(1, "in", 1.0, 2.0, "to device")]
    in_turn = [Span(0, "mm", 1.0, 2.0), Span(0, "mm", 3.0, 4.0)]
    apart = [copies[0], Span(1, "in", 2.0, 3.0, "to device"), *in_turn]
    first, second = figures.gantt({"two buffers": [*copies, *in_turn], "one": apart}, in_use=True).axes
    assert [text.get_text() for text in first.get_yticklabels()][-1] == "batches in use, ≤ 2"
    assert [text.get_text() for text in second.get_yticklabels()][-1] == "batches in use, ≤ 1"
    xs = {float(x) for x, _ in first.collections[0].get_paths()[0].vertices}
    assert xs == {0.0, 1000.0, 2000.0, 4000.0}


def test_each_slider_draws_the_timeline_of_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lab 09's and 07's over anything, lab 15's over buckets and latency, lab 16's over layers and gathers."""
    made = []
    for module in (gantt, ddp, sharded_step):
        monkeypatch.setattr(module, "with_sliders", lambda draw, sliders: made.append((draw, sliders)))
    asked = []

    def traces_of(ms: int) -> dict:
        asked.append(ms)
        return {"one": [Span(0, "mm", 0.0, ms / 1e3)]}

    gantt.gantt_player(traces_of, "ms", (1, 2), start=2)
    draw, sliders = made.pop()
    assert asked == [2] and sliders == {"value": ("ms", (1, 2), 2)}
    assert [draw(value=ms).axes[0].get_title(loc="left") for ms in (2, 1, 2)] == [
        f"one: {ms}.00 ms" for ms in (2, 1, 2)
    ]
    assert asked == [2, 1], "what was drawn before is not run again"

    monkeypatch.setattr(
        ddp, "timed_step", lambda *args: Timeline(((0, 1),), ((1, 2, 8),), 1, args[2].cap_blocks * args[3])
    )
    ddp.ddp_player(None, None, Job())
    draw, sliders = made.pop()
    assert (sliders["cap_blocks"][2], sliders["latency_ms"][2]) == (1, 1.0)
    assert draw(cap_blocks=6, latency_ms=3.0).axes[0].get_title(loc="left") == "yours: 1 call, 18 ms"

    sharded_step.sharded_step_player(gathers_when_needed)
    draw, sliders = made.pop()
    _, lower = draw(**{name: start for name, (_, _, start) in sliders.items()}).axes
    assert lower.get_title(loc="left").startswith("your order: 88 ms")
    _, lower = draw(n_layers=1, gather_ms=1.0).axes
    assert lower.get_title(loc="left").startswith("your order: 18 ms")


def test_a_text_is_drawn_where_it_has_room_and_can_be_read() -> None:
    bars = (Bar(0, 0, 90, COMPUTE, "long name"), Bar(0, 90, 95, COMPUTE, "long name"), Bar(0, 95, 100, TRANSFER, "7"))
    (axes,) = timeline([Panel("", ("GPU",), bars)], {"a": COMPUTE}, "ms").axes
    assert [(text.get_text(), text.get_color()) for text in axes.texts] == [("long name", "white"), ("7", "black")]


def test_whole_layers_of_a_sharded_step() -> None:
    order = [("gather", 0), ("forward", 0), ("backward", 0), ("free", 0), ("reduce", 0)]
    lower = figures.sharded_step(lambda n: order, n_layers=1).axes[1]
    assert [text.get_text() for text in lower.get_yticklabels()][-1] == "whole layers, ≤ 1"
    xs = {float(x) for x, _ in lower.collections[0].get_paths()[0].vertices}
    assert xs == {0.0, 15.0, 19.0}, "from the gather to the end of the backward pass; the reduction ends at 19 ms"
