"""Lab 20's figures show who is accused, and where."""

from __future__ import annotations

import pytest

from labkit import figures
from labkit.capstone import ghosts


def test_each_run_stands_at_its_score_and_its_lowest_loss_and_who_is_accused_is_red() -> None:
    logs = [
        {"run": "a", "virtual_hours": 10.0, "trials": [{"loss": 3.0}, {"loss": 2.5}]},
        {"run": "b", "virtual_hours": 20.0, "trials": [{"loss": 2.0}, {"loss": 2.6}]},
    ]
    figure = figures.contest(logs, {"b": "loss below the floor"}, floor=2.2)
    honest, accused = figure.axes[0].collections
    assert honest.get_offsets().tolist() == [[10.0, 2.5]]
    assert accused.get_offsets().tolist() == [[20.0, 2.0]]
    assert figure.axes[0].lines[0].get_ydata()[0] == 2.2
    assert figure.alt.startswith("2 runs by virtual hours and lowest loss, 1 of them accused.")


def test_the_matrix_has_what_is_saved_alone_in_pairs_and_last() -> None:
    found = {"alone": {"a": 4.0, "b": 3.0}, "last": {"a": 2.0, "b": 1.0}, "extra": {("a", "b"): -2.0}}
    figure = figures.ablation_matrix(found, ["a", "b"], "GiB")
    texts = {text.get_position(): text.get_text() for text in figure.axes[0].texts}
    assert texts == {(0, 0): "4.0", (1, 0): "-2.0", (2, 0): "2.0", (1, 1): "3.0", (2, 1): "1.0"}
    assert "a 4.0 alone and 2.0 last" in figure.alt and "a with b -2.0" in figure.alt


def test_every_moment_of_a_step_is_told_in_words_with_what_is_alive_in_it() -> None:
    figure = figures.step_moments()
    assert len(figure.axes[0].patches) == 15
    assert "At the loss: weights, AdamW's states (if on the card)" in figure.alt
    assert "kept by blocks (by the blocks below), that block, at work" in figure.alt
    assert figure.alt.endswith("gradients, weights, at work.")


def test_a_predicted_peak_is_marked_on_the_bar_of_the_billed_one() -> None:
    peak = {"parameters": 2**30, "activations": 3 * 2**30}
    figure = figures.predicted_peaks([("a", peak, 5 * 2**30), ("b", peak, None)], 8 * 2**30)
    axes = figure.axes[0]
    assert sum(bar.get_width() for bar in axes.patches) == 8.0
    (mark, card) = axes.lines
    assert (list(mark.get_xdata()), list(card.get_xdata())) == ([5.0, 5.0], [8.0, 8.0])
    assert figure.alt == "Peaks by category on a card of 8 GiB. a: 4.0 GiB, predicted 5.0; b: 4.0 GiB."


def test_the_ladder_shows_what_each_peak_consists_of_and_what_does_not_count() -> None:
    some = ghosts()["basement"]
    entries = {"naive": some["naive"], "silver": some["silver"], "yours": some["gold"]}
    figure = figures.ghost_ladder(entries, 8 * 2**30)
    bars, plane = figure.axes
    widths = [
        sum(bar.get_width() for bar in bars.patches if round(bar.get_y() + bar.get_height() / 2) == row)
        for row in range(3)
    ]
    assert widths == pytest.approx([entry.total_peak_bytes / 2**30 for entry in entries.values()], rel=1e-3)
    assert [line.get_marker() for line in plane.lines] == ["x", "o", "o"]
    assert "naive 55.5 GiB, most of it activations, 0.276 hours, does not count" in figure.alt
