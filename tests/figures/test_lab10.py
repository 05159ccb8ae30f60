"""Lab 10's figures of memory show what the executor counts, and what a kernel really does."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from matplotlib.colors import to_hex, to_rgba

from labkit import figures
from labkit.figures.banks import LENGTHS, column_passes
from labkit.figures.canvas import OTHER, YOURS
from labkit.figures.warp_accesses import LIT, OFFSETS, SIZES, STRIDES
from labkit.simt import compile_cuda
from tests.simt.harness import require_nvrtc

pytestmark = pytest.mark.lab("10")
TRANSPOSE = r"""
__global__ void transpose(const float* x, float* y, int n) {
  __shared__ float tile[32][32];  // $ is no formula $
  tile[threadIdx.y][threadIdx.x] = x[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  y[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""


@pytest.fixture(scope="module")
def profile():
    require_nvrtc()
    x, y = torch.randn(64, 64), torch.empty(64, 64)
    return compile_cuda(TRANSPOSE)["transpose"].launch((2, 2), (32, 32), x, y, 64, watch=(1, 2))


def lit(figure) -> int:
    return sum(to_hex(patch.get_facecolor()) == LIT for patch in figure.axes[0].patches)


@pytest.mark.parametrize(
    ("stride", "offset", "size", "found"), [(1, 0, 4, 4), (1, 1, 4, 5), (2, 0, 4, 8), (32, 0, 4, 32), (1, 3, 8, 9)]
)
def test_as_many_sectors_are_lit_as_are_counted(stride: int, offset: int, size: int, found: int) -> None:
    figure = figures.warp_sectors(stride, offset, size)
    assert lit(figure) == found
    assert f"{found} sectors: {32 * found:,} bytes moved" in figure.axes[0].get_title(loc="left")
    assert f"{found} sectors" in figure.alt


@pytest.mark.slow
def test_every_place_of_the_sliders_can_be_drawn() -> None:
    for stride in STRIDES:
        assert figures.warp_sectors(stride, OFFSETS[-1], SIZES[-1]).axes
    for size in SIZES:
        assert lit(figures.warp_sectors(1, 0, size)) == size


def test_a_column_is_free_of_conflicts_where_the_length_of_a_row_is_odd() -> None:
    assert [column_passes(length) for length in LENGTHS] == [32, 1, 2, 1, 4, 1, 2, 1, 8]
    for length, colour in ((33, YOURS), (34, OTHER)):
        axes = figures.bank_map(length).axes[0]
        assert axes.patches[0].get_edgecolor() == to_rgba(colour)
        assert [int(text.get_text()) for text in axes.texts] == [row * length % 32 for row in range(32)]
    assert "column 0 lies in 16 banks: 2 passes" in figures.bank_map(34).alt


def test_the_accesses_of_a_kernel_are_drawn_lane_by_lane(profile) -> None:
    x, tile, column, y = (figures.lane_addresses(profile, number) for number in range(4))
    assert lit(x) == lit(y) == 4 and "line 4: tile[threadIdx.y]" in x.axes[0].get_title(loc="left")
    # Block 1 of the grid begins at column 32, its warp 2 is row 2.
    assert x.axes[0].texts[0].get_text() == "160"
    assert (
        "1 pass over shared memory, 0 of them" in tile.alt and "32 passes over shared memory, 31 of them" in column.alt
    )
    colours = [to_hex(patch.get_facecolor()) for patch in column.axes[0].patches]
    assert (colours.count(YOURS), colours.count(OTHER)) == (1, 31)


@pytest.fixture(scope="module")
def life():
    require_nvrtc()
    return figures.life_of(TRANSPOSE, "transpose", 90)


def test_a_line_stands_beside_what_became_of_it(life) -> None:
    assert {4, 5, 6} <= set(life.lines) and life.first in (4, 6)
    for line, words in ((4, ("ld.global.f32", "st.shared.f32")), (5, ("bar.sync 0;",)), (6, ("st.global.f32",))):
        figure = figures.kernel_life(life, line)
        source, ptx, _ = figure.axes
        assert source.get_title(loc="left") == f"transpose, line {line}"
        shown = [text.get_text() for text in ptx.texts]
        assert shown[0] == f"PTX: {len(life.ptx[line])} of {sum(map(len, life.ptx.values()))} instructions"
        assert all(any(word in text for text in shown) for word in words)
        assert all(word in figure.alt for word in words)


@pytest.mark.slow
def test_machine_code_stands_there_by_the_same_lines(life) -> None:
    pytest.importorskip("triton")
    for line, words in ((4, ("LDG", "STS")), (5, ("BAR.SYNC",)), (6, ("LDS", "STG"))):
        assert all(any(word in text for text in life.sass[line]) for word in words)
        assert any(words[0] in text.get_text() for text in figures.kernel_life(life, line).axes[2].texts)


def test_without_a_disassembler_it_says_where_one_comes_from(life) -> None:
    figure = figures.kernel_life(replace(life, sass=None), 4)
    assert figure.axes[2].texts[0].get_text() == "sm_90: the disassembler comes with Triton"


def test_a_launch_that_nobody_watched_says_so(profile) -> None:
    x, y = torch.randn(64, 64), torch.empty(64, 64)
    plain = compile_cuda(TRANSPOSE)["transpose"].launch((2, 2), (32, 32), x, y, 64)
    with pytest.raises(ValueError, match=r"watch=\(block, warp\)"):
        figures.lane_addresses(plain)


@pytest.mark.parametrize(("heat", "line", "share"), [("passes", 6, 97), ("sectors", 4, 50), ("divergent", None, None)])
def test_the_hottest_line_is_named_and_reddest(profile, heat: str, line: int | None, share: int | None) -> None:
    figure = figures.source_heat(profile, heat)
    (axes,) = figure.axes
    title = axes.get_title(loc="left")
    if line is None:
        assert title == "transpose: no divergent" and not axes.patches
        return
    assert f"has {share} % of the {heat}" in title
    assert axes.patches[-1].get_alpha() == max(patch.get_alpha() for patch in axes.patches)
    texts = [text.get_text() for text in axes.texts]
    assert f"{profile.line(6)['shared_load_wavefronts']:,}" in texts and r"\$ is no formula \$" in "".join(texts)
    figure.canvas.draw()


def test_players_are_figures_or_sliders(profile) -> None:
    for shown in (figures.warp_player(), figures.bank_player(), figures.address_player(profile)):
        assert hasattr(shown, "axes") or hasattr(shown, "children")
