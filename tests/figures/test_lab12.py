"""Lab 12's figures: they show the lanes and the bytes of the student's own launches, and every text is on the page."""

from __future__ import annotations

import pytest
import torch
from matplotlib.figure import Figure

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import figures, track_traffic
from tests.exercises.harness import answers_in, solution_of
from tests.figures.on_page import assert_every_text_is_on_the_page


def of_solution(exercise_id: str, name: str):
    return answers_in(exercise_id, solution_of(exercise_id))[name]


def map_of(n: int) -> Figure:
    add = of_solution("12-add", "add")
    return figures.launch_map(lambda: add(torch.ones(n), torch.ones(n)), n)


def bars() -> tuple[Figure, torch.Tensor]:
    softmax, x = of_solution("12-softmax", "softmax"), torch.randn(4, 60)
    with track_traffic() as yours:
        softmax(x)
    with track_traffic() as eager:
        torch.exp(x).sum()
    return figures.traffic_bars({"yours": yours, "eager": eager}, 2 * x.nbytes), x


@pytest.mark.parametrize("n, n_programs", [(2600, 3), (1024, 1), (1, 1), (14_000, 14)])
def test_a_launch_is_drawn_with_its_own_lanes(n: int, n_programs: int) -> None:
    axes = map_of(n).axes[0]
    stored = sum(bar.get_width() for bar in axes.patches if bar.get_x() < n and bar.get_x() + bar.get_width() <= n)
    assert stored == n
    said = axes.get_title(loc="left")
    assert said.startswith(f"{n_programs} programs, {1024 * n_programs:,} lanes: {n:,} store (blue)")
    assert f"{1024 * n_programs - n:,} masked" in said


def test_a_call_that_launches_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was stored by a kernel: launch one"):
        figures.launch_map(lambda: torch.ones(3) + 1, 3)


def test_the_next_launch_is_not_watched_any_more() -> None:
    drawn = map_of(2600).axes[0].get_title(loc="left")
    of_solution("12-add", "add")(torch.ones(5), torch.ones(5))
    assert map_of(2600).axes[0].get_title(loc="left") == drawn


def test_the_bars_are_what_was_moved() -> None:
    figure, x = bars()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "1.00 × ideal, 1 kernel" in texts[0]
    # exp reads and writes the matrix, sum reads it and writes a number.
    assert f"{(3 * x.nbytes + 4) / (2 * x.nbytes):.2f} × ideal, 2 kernels" in texts[1]
    assert figure.axes[0].patches[0].get_width() == 0.5


@pytest.mark.parametrize("draw", [lambda: map_of(2600), lambda: bars()[0]], ids=["launch_map", "traffic_bars"])
def test_every_text_is_on_the_page(draw) -> None:
    figure = draw()
    assert_every_text_is_on_the_page(figure)
