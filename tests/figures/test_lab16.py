"""Lab 16's figures: they show the amounts that the functions give, and the messages that were counted."""

from __future__ import annotations

import itertools
import math
import re

import pytest
import torch
from torch import Tensor, nn

from labkit import figures
from labkit.figures.canvas import ink_like
from labkit.figures.collective_trace import trace_collective
from labkit.figures.sharding import (
    LARGEST,
    NODES,
    SIZES_B,
    last_size,
    sharding_bars,
    tokens_that_cover,
    tokens_that_fit,
)
from labkit.figures.two_halves import halves_of
from labkit.material.lab16 import Trained
from labkit.material.lab16_timeline import WIDTH, UnitSpans, unit_timeline
from labkit.ranks import Comm
from tests.exercises.harness import TESTS, answers_in, solution_of

SOLUTIONS = TESTS.parent / "solutions"
SENTENCE = r"$$\text{all-reduce} = \text{reduce-scatter} + \text{all-gather}"


def kept(method, n_params, n_nodes, ranks_per_node):
    return 16 * n_params / (n_nodes * ranks_per_node if method == "zero3" else 1)


def sent(method, n_params, n_nodes, ranks_per_node, n_micro):
    return (3.0 if method == "zero3" else 2.0) * n_params, 1.0 * n_params


def test_the_halves_are_those_of_an_all_reduce() -> None:
    steps = halves_of(4)
    assert (steps.n_rounds, len(steps.messages)) == (6, 24)
    diagonal = [{chunk for chunk, ranks in one.items() if len(ranks) == 4} for one in steps.states[3]]
    assert diagonal == [{0}, {1}, {2}, {3}]
    assert all(len(ranks) == 4 for one in steps.states[-1] for ranks in one.values())
    # In each round what is sent is what its sender has.
    for message in steps.messages:
        have = steps.states[message.round - 1][message.src]
        assert all(have[chunk] == ranks for chunk, ranks in message.holds.items())
    assert "reduce-scatter (rounds 1 to 3)" in figures.two_halves(n_ranks=4).axes[0].get_title(loc="left")


def test_bars_show_what_is_kept_and_sent() -> None:
    left, right = sharding_bars(kept, sent, params_b=10, n_nodes=2).axes
    assert [bar.get_width() for bar in left.patches] == [160, 160, 160, 10, 160]
    assert [bar.get_width() for bar in right.patches] == [20, 20, 20, 30, 20, 10, 10, 10, 10, 10]
    assert list(left.lines[0].get_xdata()) == [80, 80]


def test_where_communication_dominates_is_marked() -> None:
    assert math.isclose(last_size(lambda size: size <= 3e9), 3e9)
    assert last_size(lambda size: True) == LARGEST
    assert tokens_that_fit(80e9, 1e9) == 0
    assert math.isclose(tokens_that_fit(40e9, 12 * 128**2), 40e9 / 256)
    assert math.isclose(tokens_that_cover((200e9, 0), 50e9), 1000)


def test_a_mark_lies_on_its_curve_and_on_its_line_and_fits() -> None:
    axes = figures.tokens_that_hide(kept, sent).axes[0]
    marks = {line.get_color(): line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o"}
    assert len(marks) == len(axes.texts) > 1
    assert all(text.get_color() == ink_like(text.get_color()) for text in axes.texts), "too pale for small letters"
    for line in axes.lines:
        if line.get_marker() != "o" and line.get_color() in marks:
            x, y = (math.log(one) for one in marks[line.get_color()])
            points = [(math.log(a), math.log(b)) for a, b in line.get_xydata() if b]
            (a, b), (c, d) = next(pair for pair in itertools.pairwise(points) if pair[0][0] <= x <= pair[1][0])
            assert abs(b + (d - b) * (x - a) / (c - a) - y) < 0.1
    assert marks["#5f6b7a"][0] < 5e9, "80 GB hold 5 billion parameters with DDP, and no token beside them"


def test_bars_of_what_is_held_end_where_the_parts_do() -> None:
    figure = figures.held_by_stage({"a": Trained(1, 2000, 3000, 5000, 0.5), "b": Trained(1, 1000, 0, 500, 0.5)})
    ends = [bar.get_x() + bar.get_width() for bar in figure.axes[0].patches]
    assert ends == [2, 5, 10, 1, 1, 1.5] and "a 10 kB" in figure.alt


def test_the_sliders_have_a_size_at_which_zero1_begins_to_fit() -> None:
    """The text asks from how many ranks on it does."""
    fits = {size: [4 * size + 12 * size / (8 * nodes) <= 80 for nodes in NODES] for size in SIZES_B}
    assert fits[18] == [False, False, True, True, True, True, True, True] and NODES[2] == 4


def test_a_layer_is_whole_in_four_of_nine_stages() -> None:
    figure = figures.layer_through_time(3)
    weights = [box for box in figure.axes[0].patches if box.get_facecolor()[:3] == (0, 0x72 / 255, 0xB2 / 255)]
    assert len(weights) == 3 * (4 * 3 + 5)


def test_lines_show_what_was_held() -> None:
    axes = figures.held_through_layers({"yours": [10**6, 2 * 10**6, 10**6], "other": [3 * 10**6] * 3}).axes[0]
    assert [list(line.get_ydata()) for line in axes.lines[:2]] == [[1, 2, 1], [3, 3, 3]]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "1", "end"]


def test_the_timeline_shows_every_span() -> None:
    spans = UnitSpans((("forward", 0.002, 0.004),), (("all_gather", 0.0, 0.002),), 0.004, ((0.0, 1), (0.004, 0)))
    figure = figures.fsdp_timeline(spans)
    assert [(bar.get_x(), bar.get_width()) for bar in figure.axes[0].patches] == [(2, 2), (0, 2)]
    assert figure.axes[0].get_title(loc="left") == "4 ms, of which the rank computes 2 ms"
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["compute", "network", "whole units, ≤ 1"]


def test_the_timeline_has_a_colour_for_any_collective() -> None:
    figure = figures.fsdp_timeline(UnitSpans((("forward", 0.0, 1.0),), (("all_to_all", 1.0, 2.0),), 2.0))
    (legend,) = figure.legends or [figure.axes[0].get_legend()]
    assert "all-to-all" in [text.get_text() for text in legend.get_texts()]


class Unsharded(nn.Module):
    """Gathers each unit's weights for its forward pass, and keeps them or not."""

    def __init__(self, module: nn.Module, comm: Comm, keeps: bool) -> None:
        super().__init__()
        self.module, self.comm, self.keeps, self.kept = module, comm, keeps, []

    def forward(self, x: Tensor) -> Tensor:
        self.module.to(x.dtype)
        part = torch.zeros(WIDTH * (WIDTH + 1) // self.comm.world_size, dtype=x.dtype)
        whole = part.new_empty(self.comm.world_size * len(part))
        self.comm.all_gather_single(whole, part)
        self.kept += [whole] * self.keeps
        return self.module(x)


@pytest.mark.parametrize(("keeps", "most"), [(False, 1), (True, 3)])
def test_how_many_units_are_whole_is_measured(keeps: bool, most: int) -> None:
    spans = unit_timeline(
        lambda module, comm, *dtypes: Unsharded(module, comm, keeps), n_units=3, n_ranks=2, gather_s=0.006
    )
    assert max(n for _, n in spans.whole) == most
    assert spans.whole[0] == (0.0, 1)
    if keeps:
        assert [time_s for time_s, _ in spans.whole] == pytest.approx([0, 0.016, 0.032])
    else:
        assert spans.whole[1][0] == pytest.approx(0.016), "gone when its forward pass is done"


def test_the_sentence_and_its_picture_are_the_same_in_three_labs() -> None:
    """Lab 14 draws the student's own function, which sends what the library's two calls send."""
    texts = [next(SOLUTIONS.glob(f"{lab}_*.py")).read_text() for lab in ("14", "16", "17")]
    (sentence,) = {text[text.index(SENTENCE) :].partition("$$\n")[0] for text in texts}
    assert r"\frac{n-1}{n}\,S \text{ bytes sent by each rank}" in sentence
    calls = [re.findall(r"labkit\.figures\.two_halves\((.*)\)\n", text) for text in texts]
    assert calls == [["all_reduce, n_ranks=4"], ["n_ranks=4"], ["n_ranks=4"]]
    all_reduce = answers_in("14-reduce-scatter", solution_of("14-reduce-scatter"))["all_reduce"]
    own, librarys = trace_collective(all_reduce, 4), halves_of(4)
    assert own.states == librarys.states
    assert sorted(map(repr, own.messages)) == sorted(map(repr, librarys.messages))
    assert figures.two_halves(all_reduce).alt == figures.two_halves().alt


def test_an_all_reduce_in_other_rounds_is_not_called_two_halves() -> None:
    naive = answers_in("14-naive", solution_of("14-naive"))["naive_all_reduce"]
    title = figures.two_halves(naive).axes[0].get_title(loc="left")
    assert title.startswith("4 ranks, ") and "reduce-scatter" not in title
