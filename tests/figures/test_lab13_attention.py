"""Lab 13's figures on attention: they show the tiles and the bytes of the student's own launches."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

pytest.importorskip("triton", reason="Triton is not installed; it runs the kernels")

from labkit import figures
from labkit.figures.attention import loaded_keys
from labkit.figures.canvas import OTHER, YOURS
from tests.exercises.harness import answers_in, solution_of
from tests.figures.on_page import assert_every_text_is_on_the_page

LENGTHS = (64, 128, 256, 512)
MOVED = {"eager": [2**18, 2**20, 2**22, 2**24], "yours": [2**17, 2**18, 2**19, 2**21], "ideal": [2**16] * 4}


@pytest.fixture(scope="module")
def attention():
    return answers_in("13-flash-attention", solution_of("13-flash-attention"))["attention"]


def tiles(attention, block_m: int = 32, block_n: int = 16, seq: int = 100) -> Figure:
    return figures.visited_tiles(lambda q, k, v: attention(q, k, v, block_m, block_n), seq, block_m, block_n)


def colored(figure: Figure, color: str) -> int:
    from matplotlib.colors import to_rgb

    return sum(patch.get_facecolor()[:3] == to_rgb(color) and patch.get_fill() for patch in figure.axes[0].patches)


def test_keys_are_loaded_up_to_the_diagonal(attention) -> None:
    loaded = loaded_keys(lambda q, k, v: attention(q, k, v, 32, 16), 100)
    for query in range(100):
        end = min((query // 32 + 1) * 32, 100)
        assert loaded[query].tolist() == [True] * end + [False] * (100 - end)


def test_tiles_are_counted(attention) -> None:
    figure = tiles(attention)
    # 2, 4, 6 and all 7 blocks of keys.
    assert figure.axes[0].get_title(loc="left") == "19 of 28 tiles computed"
    assert (colored(figure, YOURS), colored(figure, OTHER)) == (19, 0)


def test_tiles_above_the_diagonal_are_red(attention) -> None:
    def whole(q, k, v):
        # One block of queries over everything stands in for a kernel that skips nothing.
        return attention(q, k, v, 128, 16)

    figure = figures.visited_tiles(whole, 100, 32, 16)
    assert figure.axes[0].get_title(loc="left") == "28 of 28 tiles computed, 9 of them above the diagonal (red)"
    assert colored(figure, OTHER) == 9


def test_a_call_that_loads_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no program loads queries and keys: launch your kernel on q, k and v"):
        figures.visited_tiles(lambda q, k, v: q + k, 100, 32, 16)


def test_the_lines_are_what_was_given() -> None:
    axes = figures.bytes_against_length(LENGTHS, MOVED).axes[0]
    assert [list(line.get_ydata()) for line in axes.lines] == list(MOVED.values())
    assert [text.get_text() for text in axes.texts] == ["  16.00 MiB", "  2.00 MiB", "  64.0 KiB"]


def test_too_many_lines_are_refused() -> None:
    with pytest.raises(ValueError, match="4 lines, where 3 can be told apart"):
        figures.bytes_against_length(LENGTHS, {**MOVED, "one more": [1] * 4})


def test_every_text_is_on_the_page(attention) -> None:
    for figure in (tiles(attention), figures.bytes_against_length(LENGTHS, MOVED)):
        assert_every_text_is_on_the_page(figure)
