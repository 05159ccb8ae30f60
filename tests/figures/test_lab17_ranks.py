"""Lab 17's grids of ranks: each rank has the colour and the letter of its group, node by node."""

from __future__ import annotations

from matplotlib.colors import to_hex

from labkit import figures
from labkit.figures.rank_grid import COLOURS, crossing, members, places

GROUPS = {"tensor": [[0, 1], [2, 3]], "data": [[0, 2], [1, 3]]}


def test_a_panel_for_each_kind_and_a_letter_for_each_group() -> None:
    figure = figures.rank_grid(GROUPS, 2)
    tensor, data = figure.axes
    assert [text.get_text() for text in tensor.texts] == ["A", "A", "B", "B"]
    assert [text.get_text() for text in data.texts] == ["A", "B", "A", "B"]
    assert [label.get_text() for label in data.get_yticklabels()] == ["node 0", "node 1"]
    colours = [to_hex(patch.get_facecolor()) for patch in data.patches]
    assert colours[0] == colours[2] != colours[1] == colours[3]
    assert "tensor: 2 groups, 0 on several nodes; data: 2 groups, 2 on several nodes" in figure.alt


def test_a_rank_in_no_group_or_in_two_is_seen() -> None:
    figure = figures.rank_grid({"data": [[0, 1], [1, 3]]}, 4, ("data",))
    assert [text.get_text() for text in figure.axes[0].texts] == ["A", "A/B", "", "B"]
    assert to_hex(figure.axes[0].patches[2].get_facecolor()) == "#ffffff"
    assert members([[0, 1], [1]]) == {0: [0], 1: [0, 1]} and crossing([[0, 1], [3, 4]], 4) == 1


def test_only_the_kinds_that_are_asked_for() -> None:
    figure = figures.rank_grid(GROUPS, 4, ("data",))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["data: 2 groups"]
    assert figures.rank_grid({"data": []}, 4).alt.startswith("1 nodes")


def test_rank_5_of_the_lecture_talks_to_five_ranks() -> None:
    assert places(5) == {"pipeline": 1, "data": 0, "tensor": 1}
    (axes,) = figures.grid_of_ranks().axes
    found = {name: [] for name in COLOURS}
    for rank, patch in enumerate(axes.patches):
        for name, colour in COLOURS.items():
            if to_hex(patch.get_facecolor()) == colour.lower():
                found[name].append(rank)
    assert found == {"tensor": [4], "data": [7], "pipeline": [1, 9, 13]}
