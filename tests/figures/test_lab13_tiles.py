"""Lab 13's figures of tiles: they show what the student's functions return, and every text is on the page."""

from __future__ import annotations

import pytest
import torch
from matplotlib.colors import to_rgba

from labkit import figures
from labkit.figures.canvas import OTHER, YOURS
from labkit.meters.traffic import TrafficProfile
from labkit.meters.traffic.cache import product_read_bytes
from tests.figures.on_page import assert_every_text_is_on_the_page


def in_pairs(pid: int, n_tiles_m: int, n_tiles_n: int, group: int) -> tuple[int, int]:
    """Groups of two rows, for an even number of them."""
    number, rest = divmod(pid, 2 * n_tiles_n)
    return 2 * number + rest % 2, rest // 2


def stats(blocks) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.cat(list(blocks), dim=1)
    return x.amax(1), (x - x.amax(1, keepdim=True)).exp().sum(1)


class Counted(TrafficProfile):
    total_bytes = 0


def counted(n_bytes: int) -> Counted:
    profile = Counted()
    profile.total_bytes = n_bytes
    return profile


def roof():
    return figures.tile_roofline({16: counted(100), 64: counted(1000)}, 4000, peak_flops=2e12, bandwidth=1e11)


def order():
    return figures.tile_order(in_pairs, 4, 8, group=2, at_once=8)


def curve():
    return figures.cache_curve(in_pairs, 4, 8, group=2, at_once=4, n_steps=3, block_bytes=2**20, cache_bytes=8e6)


def on_its_way():
    return figures.softmax_on_its_way(stats, torch.linspace(-2, 2, 40), 10)


def test_the_roof_says_each_tile_with_its_counted_intensity() -> None:
    texts = [text.get_text() for text in roof().axes[0].texts]
    # 40 FLOP/B are beyond the bend at 20, where the roof is.
    assert "tile 16: 40.0 FLOP/B, 2 TFLOP/s" in texts and "tile 64: 4.0 FLOP/B, 0.4 TFLOP/s" in texts


def test_the_map_shows_the_tiles_that_run_together() -> None:
    square = {(row, col) for row in (0, 1) for col in (4, 5, 6, 7)}
    for axes, color, title, tiles in (
        (order().axes[0], OTHER, "row by row: 1 + 8 = 9 strips", {(1, col) for col in range(8)}),
        (order().axes[1], YOURS, "your order: 2 + 4 = 6 strips", square),
    ):
        assert axes.get_title(loc="left") == title
        full = [patch for patch in axes.patches if patch.get_facecolor() == to_rgba(color)]
        assert {(int(patch.get_y()), int(patch.get_x())) for patch in full} == tiles


def test_the_curve_is_what_the_model_reads() -> None:
    _, yours = curve().axes[0].get_lines()[:2]
    tiles = [in_pairs(pid, 4, 8, 2) for pid in range(32)]
    for n_kept, read in zip(yours.get_xdata(), yours.get_ydata()):
        assert read == product_read_bytes(tiles, 3, 4, round(n_kept), 1)


def test_the_way_of_a_softmax_is_what_the_answer_returns() -> None:
    upper, lower = on_its_way().axes
    row = torch.linspace(-2, 2, 40)
    tops, totals = (axes.patches[0].get_data().values for axes in (upper, lower))
    for n in range(4):
        top, total = stats([row[None, : 10 * n + 10]])
        assert (tops[n], totals[n]) == (float(top), float(total))


@pytest.mark.parametrize("draw", [roof, order, curve, on_its_way])
def test_every_text_is_on_the_page(draw) -> None:
    figure = draw()
    assert_every_text_is_on_the_page(figure)
