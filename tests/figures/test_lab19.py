"""Lab 19's figures show whose a pair of query and key is, and how much each rank has to do."""

from __future__ import annotations

import numpy as np

from labkit import figures


def test_each_row_of_the_triangle_is_its_ranks_and_the_rest_nobodys() -> None:
    figure = figures.causal_deal([[0, 3], [1, 2]], "dealt")
    owner = np.asarray(figure.axes[0].images[0].get_array())
    assert owner.tolist() == [[0, -1, -1, -1], [1, 1, -1, -1], [1, 1, 1, -1], [0, 0, 0, 0]]


def test_a_bar_is_the_number_of_pairs() -> None:
    figure = figures.causal_deal([[0, 1], [2, 3]], "blocks")
    bars = figure.axes[1].patches
    assert [bar.get_width() for bar in bars] == [3, 7]
    assert "Pairs by rank: 3, 7." in figure.alt
    assert figure.axes[1].lines[0].get_xdata()[0] == 5


def test_what_is_above_the_places_of_an_expert_stands_out() -> None:
    figure = figures.expert_load({"even": [4, 4], "uneven": [7, 1]}, factor=1.25)
    heights = [[bar.get_height() for bar in axes.patches] for axes in figure.axes]
    assert heights == [[4, 4, 0, 0], [5, 1, 2, 0]]
    assert "uneven: 7, 1" in figure.alt


def test_what_a_rank_receives_is_sorted_by_sender_and_then_by_head() -> None:
    figure = figures.heads_for_tokens(n_ranks=3, heads_of_rank=2, watched=1)
    texts = [text.get_text() for text in figure.axes[2].texts]
    assert texts == [f"head {head}, rank {rank}'s tokens" for rank in range(3) for head in (2, 3)]


def test_each_cell_has_the_colour_of_the_rank_that_holds_it() -> None:
    def colours(axes) -> list:
        return [patch.get_facecolor() for patch in axes.patches if patch.get_facecolor()[3]]

    before, after, _ = (colours(axes) for axes in figures.heads_for_tokens(n_ranks=3, heads_of_rank=2).axes)
    assert before[:3] == before[3:6] and len(set(before)) == 3
    assert len(set(after[:6])) == 1 and len(set(after)) == 3
