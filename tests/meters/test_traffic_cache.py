"""The model of a cache: it agrees with what can be counted by hand."""

from __future__ import annotations

from itertools import product

import pytest

from labkit.meters.traffic.cache import block_reads, product_read_bytes, read_from_memory

ROWS, COLS, STEPS = 5, 7, 3
ROW_BY_ROW = list(product(range(ROWS), range(COLS)))
ONCE = STEPS * (ROWS + COLS)
"""Blocks of both factors."""


def n_read(tiles: list, at_once: int, n_kept: int) -> int:
    return product_read_bytes(tiles, STEPS, at_once, n_kept, 1)


def test_the_block_that_was_not_read_for_longest_goes() -> None:
    assert read_from_memory("abacab", 2) == [True, True, False, True, False, True]
    assert read_from_memory("abcabc", 3) == [True] * 3 + [False] * 3
    # One place too few, and a cyclic order finds nothing.
    assert all(read_from_memory("abcabc", 2))


def test_a_cache_for_everything_reads_each_block_once() -> None:
    assert n_read(ROW_BY_ROW, 1, ONCE) == n_read(ROW_BY_ROW, 4, ONCE) == ONCE


def test_a_cache_of_one_block_finds_nothing() -> None:
    assert n_read(ROW_BY_ROW, 1, 1) == 2 * STEPS * ROWS * COLS


def test_row_by_row_one_by_one_reads_a_once_and_b_for_each_row() -> None:
    assert n_read(ROW_BY_ROW, 1, 2 * STEPS) == STEPS * (ROWS + ROWS * COLS)


@pytest.mark.parametrize("group", [1, 2, 3, 5])
def test_groups_of_rows_read_b_once_for_each_group(group: int) -> None:
    tiles = sorted(ROW_BY_ROW, key=lambda tile: (tile[0] // group, tile[1]))
    n_groups = -(-ROWS // group)
    assert n_read(tiles, 1, STEPS * (group + 2)) == STEPS * (ROWS + n_groups * COLS)


def test_programs_at_once_share_what_they_read_in_the_same_step() -> None:
    assert n_read(ROW_BY_ROW, ROWS * COLS, ROWS + COLS) == ONCE
    # A row of tiles at a time: its strip of A, and all of B.
    assert n_read(ROW_BY_ROW, COLS, COLS + 2) == STEPS * ROWS * (1 + COLS)


def test_the_last_programs_may_be_fewer() -> None:
    reads = list(block_reads(ROW_BY_ROW, STEPS, 4))
    assert len(reads) == 2 * STEPS * ROWS * COLS
    assert reads[-2:] == [("a", ROWS - 1, STEPS - 1), ("b", STEPS - 1, COLS - 1)]


def test_no_cache_is_refused() -> None:
    with pytest.raises(ValueError, match="keeps 0 blocks is not one: give it at least one block"):
        read_from_memory("ab", 0)
