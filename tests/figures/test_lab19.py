"""Lab 19's figures show whose a pair of query and key is, and how much each rank has to do."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from labkit import figures

causal_deal, expert_load, ring_steps = (
    f"labkit.figures.{name}" for name in ("causal_deal", "expert_load", "ring_steps")
)
"""The modules; of the first two `labkit.figures` shows functions of the same names."""


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


@pytest.fixture
def players(monkeypatch: pytest.MonkeyPatch) -> list:
    """What is drawn under sliders, and the sliders."""
    kept: list = []
    for module in (causal_deal, expert_load, ring_steps):
        monkeypatch.setattr(sys.modules[module], "with_sliders", lambda draw, sliders: kept.append((draw, sliders)))
    return kept


def test_the_player_compares_blocks_with_the_students_own_order(players: list) -> None:
    figures.deal_player(lambda n_tokens, n_ranks: [list(range(rank, n_tokens, n_ranks)) for rank in range(n_ranks)])
    ((draw, sliders),) = players
    for n_ranks in sliders["n_ranks"][1]:
        blocks, _, dealt, _ = draw(n_ranks).axes
        assert blocks.images[0].get_array()[-1, 0] == n_ranks - 1
        assert dealt.images[0].get_array()[1, 0] == 1 % n_ranks
    figure = draw(2)
    assert "Pairs by rank: 300, 876." in figure.alt and "Pairs by rank: 576, 600." in figure.alt
    assert any("1.49 x as long" in text.get_text() for text in figure.axes[1].texts)


def test_before_the_prediction_nothing_is_compared() -> None:
    figure = figures.causal_deal([[0, 1], [2, 3]], "blocks")
    assert not [text for axes in figure.axes for text in axes.texts if "as long" in text.get_text()]


def test_the_player_draws_what_the_students_functions_keep_and_drop(players: list) -> None:
    def dispatch(logits: torch.Tensor, k: int, places: int) -> tuple[torch.Tensor, torch.Tensor]:
        assert (k, places) == (1, 3)
        return torch.tensor([[0], [0], [0], [0], [1]]), torch.tensor([[True], [True], [True], [False], [True]])

    figures.expert_player(lambda *sizes: 3, dispatch, lambda shared: torch.zeros(5, 2))
    ((draw, _),) = players
    figure = draw(1.0, 1.25)
    assert [bar.get_height() for bar in figure.axes[0].patches] == [3, 1, 1, 0]
    assert figure.alt.startswith(
        "busiest expert: 1.60 x the mean; dropped: 20%; empty places: 33%. 3 places at each expert."
    )


def test_a_long_block_hides_its_transfer_and_a_short_one_does_not(players: list) -> None:
    figures.ring_steps_player()
    ((draw, sliders),) = players
    hidden = {length: "at work 100% of the time" in draw(length).alt for _, length in sliders["length"][1]}
    assert hidden == {1024: False, 2048: False, 4096: False, 8192: True, 16384: True, 32768: True}


def test_a_hop_begins_with_the_work_that_hides_it() -> None:
    above, below = sys.modules[ring_steps].ring_steps(4096).axes
    starts = {axes: [round(bar.get_x(), 3) for bar in axes.patches] for axes in (above, below)}
    assert starts[below] == [0, 0, 2.684, 2.684, 5.369, 5.369, 8.053]
    assert starts[above] == [0, 1.374, 4.059, 5.433, 8.117, 9.492, 12.176]
