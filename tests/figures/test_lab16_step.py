"""The step of a sharded model: both orders on one axis, and a note where the student's is no step."""

from __future__ import annotations

import pytest

from labkit import figures
from labkit.exercises.lab16.prefetch import gathers_when_needed

pytestmark = pytest.mark.lab("16")


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_before_the_exercise_there_is_one_chart() -> None:
    figure = figures.sharded_step()
    assert titles(figure) == ["each layer gathered when it is needed: 88 ms, the GPU works 55% of the time"]
    assert "88 ms" in figure.alt
    bars = figure.axes[0].patches
    assert len(bars) == 8 + 8 + 4 and max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(88)


def test_the_students_order_is_drawn_below() -> None:
    order = [("gather", 0), ("forward", 0), ("backward", 0), ("free", 0), ("reduce", 0)]
    figure = figures.sharded_step(lambda n: order, n_layers=1)
    assert titles(figure)[1] == "your order: 19 ms, the GPU works 63% of the time"
    assert len(figure.axes[1].patches) == 4


def test_an_order_that_is_no_step_is_said_to_be_none() -> None:
    figure = figures.sharded_step(lambda n: gathers_when_needed(n)[:-1])
    assert titles(figure)[1] == "your order: no step (the list ends without ('reduce', 0))"
    assert not figure.axes[1].patches


def test_a_blank_answer_is_a_note() -> None:
    def fsdp_order(n_layers: int) -> list:
        raise NotImplementedError("Write your answer here.")

    (axes,) = figures.sharded_step(fsdp_order).axes
    assert "Nothing to draw yet" in axes.texts[0].get_text()
