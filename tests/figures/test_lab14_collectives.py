"""The figures of lab 14's algorithms: they show the messages of the function that they are given, and nothing else."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from labkit import figures
from labkit.figures.collective_trace import trace_collective
from labkit.figures.collectives import COMPLETE, PARTIAL
from labkit.figures.cost_model import COLORS
from tests.figures.on_page import assert_every_text_is_on_the_page
from tests.ranks.algorithms import butterfly, naive, ring, tree

WAYS = {"naive": naive, "tree": tree, "butterfly": butterfly, "ring": ring}


def patches(figure: Figure, kind: type) -> list:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, kind)]


def only_up(comm, x):
    """The sum on rank 0 alone."""
    if comm.rank:
        comm.send(x, 0)
        return x
    total, got = x.clone(), torch.empty_like(x)
    for other in range(1, comm.world_size):
        comm.recv(got, other)
        total += got
    return total


@pytest.mark.parametrize("name", WAYS)
def test_every_message_is_an_arrow_and_all_boxes_end_dark(name: str) -> None:
    steps = trace_collective(WAYS[name], 4)
    figure = figures.collective_steps(WAYS[name], n_ranks=4)
    assert len(patches(figure, FancyArrowPatch)) == len(steps.messages) == sum(steps.traffic.messages)
    everything = frozenset(range(4))
    assert all(ranks == everything for holding in steps.states[-1] for ranks in holding.values())
    assert steps.n_rounds == steps.traffic.seconds
    rounds = {"naive": 6, "tree": 4, "butterfly": 2, "ring": 6}[name]
    assert f"4 ranks, {rounds} rounds;" in figure.axes[0].get_title(loc="left")


def test_a_ring_is_drawn_in_chunks_with_a_frame_around_what_comes() -> None:
    steps = trace_collective(ring, 3)
    assert (steps.n_chunks, trace_collective(tree, 3).n_chunks) == (3, 1)
    assert steps.states[0] == tuple(dict.fromkeys(range(3), frozenset({rank})) for rank in range(3))
    # Rank 1 gets chunk 0 of rank 0 first, then chunk 2 with the numbers of ranks 2 and 0.
    assert steps.states[1][1] == {0: frozenset({0, 1}), 1: frozenset({1}), 2: frozenset({1})}
    assert steps.states[2][1] == {0: frozenset({0, 1}), 1: frozenset({1}), 2: frozenset({0, 1, 2})}
    frames = [patch for patch in patches(figures.collective_steps(ring, 3), Rectangle) if not patch.get_fill()]
    assert len(frames) == len(steps.messages)


def test_a_wrong_answer_is_drawn_as_it_is() -> None:
    figure = figures.collective_steps(only_up, n_ranks=3)
    colours = [patch.get_facecolor() for patch in patches(figure, Rectangle)]
    # Only rank 0 is complete, after round 2; slots are drawn one by one.
    assert colours.count(to_rgba(COMPLETE)) == 3 and to_rgba(PARTIAL) in colours
    twice = trace_collective(lambda comm, x: comm.send(2 * x, 0) if comm.rank else comm.recv(x, 1), 2)
    assert twice.n_rounds == 1


def test_one_rank_alone() -> None:
    assert trace_collective(ring, 1).n_rounds == 0
    assert patches(figures.collective_steps(naive, 1), FancyArrowPatch) == []


def test_of_many_rounds_the_first_are_shown() -> None:
    figure = figures.collective_steps(naive, n_ranks=8)
    assert "8 ranks, 14 rounds;" in (title := figure.axes[0].get_title(loc="left"))
    assert title.endswith("(the first 8 are shown)")
    assert len(patches(figure, FancyArrowPatch)) == 8
    assert "shown" not in figures.collective_steps(tree, n_ranks=8).axes[0].get_title(loc="left")


def test_too_many_ranks_are_refused() -> None:
    with pytest.raises(ValueError, match="n_ranks is 17: a picture can hold 1 to 16 ranks"):
        figures.collective_steps(ring, n_ranks=17)


def test_the_bars_are_the_bytes_of_each_rank() -> None:
    (axes,) = figures.bytes_by_rank(WAYS, n_ranks=4).axes
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(
        [3, 1, 1, 1, 2, 1, 2, 1, 2, 2, 2, 2, 1.5, 1.5, 1.5, 1.5]
    )
    assert axes.texts[0].get_text() == "6 rounds\n6 S together"
    # The colours of the lines of the cost model.
    assert [bar.get_facecolor() for bar in axes.patches[::4]] == [to_rgba(colour) for colour in COLORS.values()]


@pytest.mark.parametrize("draw", [lambda: figures.collective_steps(tree, 8), lambda: figures.bytes_by_rank(WAYS, 8)])
def test_every_text_is_on_the_page(draw) -> None:
    figure = draw()
    assert_every_text_is_on_the_page(figure)


def test_without_ipywidgets_there_is_one_figure(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert isinstance(figures.collective_player(WAYS, n_ranks=4), Figure)


def test_the_slider_goes_as_far_as_the_algorithm() -> None:
    pytest.importorskip("ipywidgets")
    choice, row, _ = figures.collective_player(WAYS, n_ranks=4).children
    play, slider = row.children
    assert (choice.value, slider.max, play.max) == ("naive", 6, 6)
    slider.value = 6
    choice.value = "butterfly"
    assert (slider.value, slider.max, play.max) == (1, 2, 2)
    choice.value = "ring"
    assert slider.max == 6
    slider.value = 5
