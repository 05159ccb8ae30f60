"""The figures of rates and scaling laws in lab 01: drawn from the function that is handed in, and readable."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from matplotlib.figure import Figure

from labkit import figures
from labkit.figures.machine import MachinePeaks, Measured
from tests.exercises.harness import answers_in, solution_of
from tests.figures.on_page import assert_every_text_is_on_the_page

MACHINE = MachinePeaks("a machine", peak_flops=2e11, bandwidth=4e10)
MEASURED = (
    Measured(("add", 100, 1000, 0, 4), 4e-5),
    Measured(("softmax", 100, 1000, 0, 4), 4e-5),
    Measured(("layernorm", 100, 1000, 0, 4), 4e-5),
    Measured(("linear", 1, 1000, 1000, 4), 2e-4),
    Measured(("linear", 512, 1000, 1000, 4), 1e-2),
)
SIZE = torch.logspace(6, 9, 12, dtype=torch.float64)
TABLES = {"one": (SIZE, 1.5 + 100 * SIZE**-0.3), "two": (SIZE, 2.0 + 50 * SIZE**-0.2)}
SHARES = {"matrix products": (0.998, 0.6, 0.61), "normalization": (0.0015, 0.2, 0.25), "others": (0.0005, 0.2, 0.14)}


def answers(**instead: Callable) -> dict:
    found: dict = {}
    for exercise_id in ("01-scaling-law", "01-arithmetic-intensity"):
        found |= answers_in(exercise_id, solution_of(exercise_id))
    return found | instead


def drawn_roofline(**instead: Callable) -> Figure:
    found = answers(**instead)
    return figures.roofline(found["operator_cost"], found["least_time"], MACHINE, MEASURED)


def drawn_laws(**instead: Callable) -> Figure:
    return figures.scaling_law(answers(**instead)["fit_scaling_law"], TABLES)


@pytest.mark.parametrize("draw", [drawn_roofline, drawn_laws, lambda: figures.flops_against_time(SHARES)])
def test_it_has_something_on_it_and_every_text_is_on_the_page(draw: Callable[[], Figure]) -> None:
    figure = draw()
    assert figure.axes and any(axes.lines or axes.patches for axes in figure.axes)
    assert_every_text_is_on_the_page(figure)


def test_the_points_stand_at_the_students_own_intensities() -> None:
    def one_flop_a_byte(operator, rows, cols, n_out, itemsize):
        return 1e6, 1e6

    points = [
        line for line in drawn_roofline(operator_cost=one_flop_a_byte).axes[0].lines if len(line.get_xdata()) == 1
    ]
    assert [float(point.get_xdata()[0]) for point in points] == [1.0] * len(MEASURED)
    assert [float(point.get_ydata()[0]) for point in points] == [1e6 / run.seconds for run in MEASURED]


def test_the_linear_layers_are_labelled_with_their_rows() -> None:
    texts = [text.get_text() for text in drawn_roofline().axes[0].texts]
    assert texts[1:] == ["1", "512"]


def test_the_roof_is_the_students_own() -> None:
    def flat(flops, n_bytes, peak, bandwidth):
        return flops / 1e9, "compute"

    right, wrong = (
        figure.axes[0].lines[0].get_ydata() for figure in (drawn_roofline(), drawn_roofline(least_time=flat))
    )
    assert max(right) == pytest.approx(MACHINE.peak_flops)
    assert [max(wrong), min(wrong)] == pytest.approx([1e9, 1e9])


def test_the_laws_are_the_students_own() -> None:
    figure = drawn_laws(fit_scaling_law=lambda size, loss: (2.0, 0.5, 1.0))
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [f"{name}: α = 0.5, E = 1" for name in TABLES]


def test_the_shares_are_labelled_with_their_numbers() -> None:
    texts = {text.get_text() for text in figures.flops_against_time(SHARES).axes[0].texts}
    assert {"99.8 %", "60.0 %", "61.0 %", "0.15 %", "0.05 %"} <= texts
