"""Lab 20's figures show who is accused, and where."""

from __future__ import annotations

from labkit import figures


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
