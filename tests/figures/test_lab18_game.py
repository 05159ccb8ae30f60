"""Lab 18's game: the buttons play, undo and begin again, refusals are shown, and a chart stands where none can be."""

from __future__ import annotations

import importlib.util

import pytest

from labkit import figures
from labkit.figures.canvas import LabFigure


def all_of(widget, kind: type) -> list:
    """The widget and its descendants of this kind, in order."""
    found = [widget] if isinstance(widget, kind) else []
    return found + [one for child in getattr(widget, "children", ()) for one in all_of(child, kind)]


@pytest.mark.slow
def test_a_click_plays_and_an_illegal_one_says_what_is_missing() -> None:
    widgets = pytest.importorskip("ipywidgets")
    game = figures.schedule_game(2, 2)
    buttons = {one.description: one for one in all_of(game, widgets.Button)}
    said, chart = all_of(game, widgets.HTML)
    assert list(buttons) == ["forward 0", "backward 0", "forward 1", "backward 1", "undo", "start again"]
    empty = chart.value
    assert empty.startswith('<img src="data:image/png;base64,') and "8 passes to go" in said.value
    assert 'alt="8 passes to go' in empty
    buttons["forward 0"].click()
    one = chart.value
    assert one != empty and "7 passes to go" in said.value
    buttons["backward 0"].click()
    assert chart.value == one
    assert (
        "the backward pass of micro-batch 0 on stage 0 needs the backward pass of micro-batch 0 on stage 1"
        in said.value
    )
    buttons["undo"].click()
    assert chart.value == empty and "8 passes to go" in said.value
    for name in ("forward 0", "forward 1", "start again"):
        buttons[name].click()
    assert chart.value == empty


def test_the_whole_game_ends_with_its_score() -> None:
    widgets = pytest.importorskip("ipywidgets")
    game = figures.schedule_game(2, 1)
    buttons = {one.description: one for one in all_of(game, widgets.Button)}
    for name in ("forward 0", "forward 1", "backward 1", "backward 0"):
        buttons[name].click()
    said, _ = all_of(game, widgets.HTML)
    assert "Done in 6 units of time (no order takes less); stages hold at most 1, 1." in said.value


def test_without_widgets_it_is_a_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    figure = figures.schedule_game()
    assert isinstance(figure, LabFigure) and "24 passes to go" in figure.alt


def test_a_strip_shows_the_moves_and_names_the_refused_one() -> None:
    figure = figures.schedule_strip([("F", 0), ("F", 1), ("B", 0)], n_stages=2, n_microbatches=2)
    (axes,) = figure.axes
    assert axes.get_title(loc="left").startswith("Not yet: the backward pass of micro-batch 0 on stage 0 needs")
    assert "So far 2 units of time; stages hold at most 1, 1." in figure.alt
    assert [text.get_text() for text in axes.texts if text.get_text().isdigit()] == ["0", "0"]
