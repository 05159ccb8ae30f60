"""The figure of lab 15's launched script: it shows the numbers that came back, and nothing runs off the page."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from labkit.figures import killed_run
from labkit.material.lab15 import SHOWN, LaunchedTraining
from tests.figures.on_page import assert_every_text_is_on_the_page

FOUND = {
    "losses": torch.linspace(3, 1, SHOWN.n_steps, dtype=torch.float64),
    "error": None,
    "left": [],
}
ALONE = LaunchedTraining(SHOWN, False, FOUND)
KILLED = LaunchedTraining(SHOWN, True, {**FOUND, "left": [{"step": 20}, {"step": 30}]})


def test_both_curves_are_the_ones_that_came_back() -> None:
    other = replace(KILLED, found={**KILLED.found, "losses": FOUND["losses"] + 0.5})
    line, dots = killed_run(ALONE, other).axes[0].lines[:2]
    assert list(line.get_ydata()) == FOUND["losses"].tolist()
    assert list(dots.get_ydata()) == (FOUND["losses"] + 0.5).tolist()
    assert list(dots.get_xdata())[:2] == [1, 2]


def test_each_kill_is_marked_where_it_came_and_the_work_it_cost_is_counted() -> None:
    axes = killed_run(ALONE, KILLED).axes[0]
    assert [line.get_xdata()[0] for line in axes.lines[2:]] == [27.5, 40.5]
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["7 steps\ndone twice", "rank 1 killed", "10 steps\ndone twice", "rank 0 killed\nas it saves"]


def test_a_kill_without_a_checkpoint_shades_nothing() -> None:
    lost = replace(KILLED, found={**FOUND, "left": [{"step": None}]})
    axes = killed_run(ALONE, lost).axes[0]
    assert [text.get_text() for text in axes.texts] == ["rank 1 killed"]


def test_a_launch_without_losses_says_why() -> None:
    failed = replace(KILLED, found={"losses": None, "error": "rank 1, line 3 of the script: KeyError: 'x'", "left": []})
    labels = [text.get_text() for text in killed_run(ALONE, failed).axes[0].get_legend().get_texts()]
    assert labels == ["left alone", "killed twice: no losses (rank 1, line 3 of the script: KeyError: 'x')"]


@pytest.mark.parametrize("killed", [KILLED, replace(KILLED, found={**FOUND, "left": [{"step": 0}]})])
def test_every_text_is_on_the_page(killed: LaunchedTraining) -> None:
    figure = killed_run(ALONE, killed)
    assert_every_text_is_on_the_page(figure)
