"""Lab 17's figures: they show who has which part, what each tensor is, and which gradients are off."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from labkit import figures
from labkit.figures.canvas import OTHER, TRUTH, YOURS
from labkit.figures.tensor_words import white_boxes
from labkit.material.lab17_sequence import BlockCost
from labkit.material.lab17_words import STAGES, WORDS, Colouring, Word, word_of

pytestmark = pytest.mark.lab("17")


def test_a_quarter_a_sum_and_another_direction_are_told_apart() -> None:
    reference = {
        "norm": torch.tensor([3.0, 4.0]),
        "bias": torch.ones(2),
        "w": torch.tensor([1.0, 0.0]),
        "v": torch.ones(3),
    }
    by_rank = [
        {
            "norm": reference["norm"] / 4,
            "bias": reference["bias"] * (1 + rank),
            "w": torch.tensor([0.0, 1.0]),
            "v": torch.ones(3),
        }
        for rank in range(2)
    ]
    figure = figures.gradient_ratios(reference, by_rank)
    axes = figure.axes[0]
    bars = [line for line in axes.lines if line.get_linewidth() == 7]
    assert [bar.get_xdata()[1] for bar in bars] == [0.25, 1.5, 1, 1]
    assert [bar.get_color() for bar in bars] == [YOURS, YOURS, OTHER, TRUTH]
    assert [text.get_text() for text in axes.texts] == ["0.25", "1 to 2", "1, turned", "1"]
    assert figure.alt == "Gradients that differ from one process: norm 0.25; bias 1 to 2; w 1, turned"


def test_a_missing_gradient_stands_at_the_left_edge_and_a_part_is_compared_with_its_part() -> None:
    whole = torch.arange(1.0, 5.0)
    parts = [{"w": part} for part in whole.split(2)]
    figure = figures.gradient_ratios(parts, [{"w": whole[:2].clone()}, {"w": None}])
    assert [text.get_text() for text in figure.axes[0].texts] == ["0 to 1"]
    assert min(figure.axes[0].lines[1].get_xdata()) == 1 / 16


def test_words_come_from_values() -> None:
    whole = torch.arange(12.0).reshape(4, 3)
    assert word_of([whole, whole.clone()], whole) == Word("replicated")
    assert word_of(whole.chunk(2), whole) == Word("sharded", "tokens")
    assert word_of(whole.tensor_split(2, 1), whole) == Word("sharded", "columns")
    assert word_of([whole / 4, 3 * whole / 4], whole) == Word("partial")
    with pytest.raises(ValueError, match="neither copies nor parts"):
        word_of([whole, 2 * whole], whole)


def test_a_block_has_one_all_reduce_each_way_or_its_two_halves() -> None:
    def drawn(sequence_parallel: bool) -> list[str]:
        figure = figures.tensor_words(sequence_parallel=sequence_parallel)
        return sorted(text.get_text() for text in figure.axes[0].texts if text.get_color() == OTHER)

    assert drawn(False) == ["all-reduce"] * 2
    assert drawn(True) == ["all-\ngather"] * 2 + ["reduce-\nscatter"] * 2
    blank = white_boxes()
    assert sum(text.get_text() == "?" for text in blank.axes[0].texts) == 2 * len(STAGES)
    assert "partial" not in blank.alt


def test_words_that_are_not_right_stand_in_red_under_their_boxes() -> None:
    given = Colouring({"x": "replicated", "x A": "partial"}, {"into A": "partial", "x A B": "partial"})
    figure = figures.tensor_words(yours=given)
    red = [text for text in figure.axes[0].texts if text.get_color() == OTHER and "reduce" not in text.get_text()]
    assert [text.get_text() for text in red] == ["not partial", "not partial"]
    assert figure.axes[0].get_title(loc="left") == "2 of the 4 words that you gave are right; the others stand in red"
    assert figures.tensor_words(yours=Colouring()).axes[0].get_title(loc="left") == ""


def test_a_click_gives_a_box_its_next_word() -> None:
    widgets = pytest.importorskip("ipywidgets")
    given = Colouring()
    upper, lower, chart = figures.colour_words(given).children
    buttons = {(row, one.description): one for row in (upper, lower) for one in row.children if hasattr(one, "click")}
    assert len(buttons) == 2 * len(STAGES) and isinstance(chart, widgets.HTML)
    pictures = [chart.value]
    for _ in WORDS:
        buttons[lower, "into A"].click()
        pictures.append(chart.value)
    assert given == Colouring(backward={"into A": "partial"})
    assert len(set(pictures)) == len(pictures), "each click is drawn"
    assert "Coloured so far: gradient of into A partial" in chart.value
    buttons[lower, "into A"].click()
    assert given.backward == {"into A": "replicated"} and chart.value == pictures[1]


def test_without_widgets_the_boxes_are_white(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "white boxes" in figures.colour_words(Colouring()).alt


@pytest.mark.parametrize("n_ranks", [1, 2, 4, 8])
def test_each_rank_has_its_share_of_both_matrices(n_ranks: int) -> None:
    figure = figures.cut_matrices(n_ranks)
    assert f"A 4096 x {16384 // n_ranks}" in figure.alt and f"B {16384 // n_ranks} x 4096" in figure.alt
    assert f"{256 // n_ranks} MiB" in figure.axes[0].get_title(loc="left")


def test_bars_show_what_was_sent_and_held() -> None:
    costs = {"a": BlockCost(10**6, 2 * 10**6, 5 * 10**6), "b": BlockCost(10**6, 10**6, 10**6)}
    left, right = figures.sequence_costs(costs).axes
    assert [bar.get_width() for bar in left.patches] == [1, 2, 1, 1]
    assert [bar.get_width() for bar in right.patches] == [5, 1]
