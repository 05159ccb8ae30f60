"""Lab 10's figures of occupancy are drawn from the student's functions: a wrong answer looks wrong."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from labkit import figures
from labkit.exercises.lab10.chips import A100, H100
from labkit.exercises.lab10.occupancy import COPIES
from labkit.figures.canvas import OTHER, YOURS
from tests.exercises.harness import answers_in, solution_of

pytestmark = pytest.mark.lab("10")


@pytest.fixture(scope="module")
def solved() -> dict[str, object]:
    return answers_in("10-occupancy", solution_of("10-occupancy"))


def test_one_more_register_halves_the_occupancy_of_large_blocks(solved) -> None:
    left, right = figures.occupancy_steps(solved["resident"], H100).axes
    lines = {line.get_label(): dict(zip(*line.get_data(), strict=True)) for line in (*left.lines, *right.lines)}
    assert (lines["blocks of 512"][64], lines["blocks of 512"][65]) == (50, 25)
    assert lines["blocks of 1024"][65] == 0
    assert (lines["32 registers"][512], lines["32 registers"][32]) == (100, 50)


def test_the_tail_is_red_and_as_high_as_what_is_left(solved) -> None:
    figure = figures.wave_chart(solved["waves"], 4, H100, 1100)
    left, right = figure.axes
    heights = [(patch.get_height(), to_hex(patch.get_facecolor())) for patch in right.patches[3:]]
    assert heights == [(528, YOURS), (528, YOURS), (44, OTHER)]
    assert right.get_title(loc="left") == "1,100 blocks: 3 waves, 69 %"
    efficiency = dict(zip(*left.lines[0].get_data(), strict=True))
    assert efficiency[528] == 100 and efficiency[529] == pytest.approx(50, abs=0.2)
    full = figures.wave_chart(solved["waves"], 2, A100, 216).axes[1]
    assert [to_hex(patch.get_facecolor()) for patch in full.patches[1:]] == [YOURS]


def test_few_threads_with_wide_loads_lie_above_the_line(solved) -> None:
    kernels = {"narrow": COPIES[0], "wide": COPIES[3]}
    figure = figures.bytes_on_their_way(solved["resident"], solved["in_flight"], kernels, H100)
    (axes,) = figure.axes
    narrow, wide, needed = axes.lines
    (full, few), (half, many) = (line.get_xydata()[0] for line in (narrow, wide))
    assert (full, half) == (100, 50) and few < 15.2 < many
    assert needed.get_ydata()[0] == pytest.approx(15.227, abs=1e-3)
    assert [text.get_text().split(":")[0] for text in axes.texts] == ["narrow", "wide", "15.2 KB keep the memory busy"]


def test_a_figure_says_what_it_shows_to_those_who_cannot_see_it(solved) -> None:
    data, more = figures.wave_chart(solved["waves"], 4, H100, 1100)._repr_png_()
    assert data and "the last wave has 44" in more["alt"] and more["width"] == 860
