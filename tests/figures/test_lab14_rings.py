"""Lab 14's drawings: the chunks that the rule in the text names, and the links that leave a node."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from labkit import figures
from labkit.figures.canvas import OTHER
from labkit.figures.rings import crossing_links


def test_each_step_says_which_chunk_travels() -> None:
    for step, axes in enumerate(figures.ring_plan(4, 3).axes):
        told = [text.get_text() for text in axes.texts if text.get_text().startswith("chunk")]
        assert told == [f"chunk {(rank - step) % 4}" for rank in range(4)]


@pytest.mark.parametrize(
    ("nodes", "crossing"),
    [
        ([[0, 1], [2, 3]], [(1, 2), (3, 0)]),
        ([[0, 2], [1, 3]], [(0, 1), (1, 2), (2, 3), (3, 0)]),
        ([[0, 1, 2]], []),
    ],
)
def test_links_that_leave_a_node(nodes: list, crossing: list) -> None:
    assert crossing_links(nodes) == crossing


def test_crossing_links_are_red_and_counted() -> None:
    for axes, n_red, title in zip(figures.ring_over_nodes().axes, (4, 16), ("1 of 4", "4 of 4")):
        arrows = [patch for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch"]
        assert len(arrows) == 16 and title in axes.get_title(loc="left")
        assert sum(to_hex(arrow.get_edgecolor()) == OTHER for arrow in arrows) == n_red
