"""Reads that are marked for less are marked as all others are."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.simt.lanes import Lanes
from labkit.simt.shadow import Shadow

N_THREADS, N_WORDS, GRANULE = 64, 40, 4


def shadow(n_blocks: int) -> Shadow:
    return Shadow(Lanes((n_blocks, 1, 1), (N_THREADS, 1, 1), 0, n_blocks), GRANULE * N_WORDS, GRANULE)


def marks(one: Shadow) -> list[np.ndarray]:
    return [one.writer, one.reader, one.writer_pc, one.reader_pc, one.written]


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_reads_for_less_leave_the_marks_of_all_others(n_blocks: int) -> None:
    n_quick = sum(read_both_ways(n_blocks, np.random.default_rng(seed)) for seed in range(20))
    assert n_quick > 40, "hardly any was marked for less"


def read_both_ways(n_blocks: int, rng: np.random.Generator) -> int:
    """How many of the reads of a random program were marked for less."""
    plain, quick = shadow(n_blocks), shadow(n_blocks)
    n_quick = 0
    for pc in range(60):
        what = rng.choice(["read", "read", "read", "write", "barrier", "sync"], p=[0.25, 0.2, 0.2, 0.15, 0.19, 0.01])
        if what == "barrier":
            for one in (plain, quick):
                one.barrier(None)
            continue
        if what == "sync":
            for one in (plain, quick):
                one.sync_warps(np.ones((1, N_THREADS // 32), np.int64))
            continue
        threads = np.sort(rng.choice(N_THREADS, rng.integers(1, N_THREADS + 1), replace=False))
        rows = np.zeros_like(threads)
        # All read one word, a word each, or any.
        words = [
            np.full(len(threads), rng.integers(N_WORDS)),
            threads % N_WORDS,
            rng.integers(0, N_WORDS, len(threads)),
        ]
        offsets = GRANULE * words[rng.integers(3)]
        if what == "write":
            found = [one.write(offsets, rows, threads, GRANULE, pc, None) for one in (plain, quick)]
        else:
            wanted = plain.read(offsets, rows, threads, GRANULE, pc)
            is_quick = quick.read_alike(quick.together(offsets, threads, GRANULE), pc)
            found = [wanted, (None, -1) if is_quick else quick.read(offsets, rows, threads, GRANULE, pc)]
            n_quick += is_quick
        assert found[0] == found[1]
        assert all(map(np.array_equal, marks(plain), marks(quick)))
    return n_quick


def test_nothing_is_marked_for_less_where_blocks_differ_or_an_access_is_wide() -> None:
    one = shadow(3)
    threads = np.arange(N_THREADS)
    assert one.together(GRANULE * (threads % N_WORDS), threads, 2 * GRANULE) is None
    lanes = one.together(GRANULE * (threads % N_WORDS), threads, GRANULE)
    assert not one.read_alike(lanes, 0), "nobody has written there"
    one.write(GRANULE * (threads % N_WORDS), 0 * threads, threads, GRANULE, 0, None)
    assert not one.read_alike(lanes, 1), "it was written since the last barrier"
    one.barrier(None)
    assert one.read_alike(lanes, 2)
    assert not one.read_alike(lanes, 3), "it was read since the last barrier"
    one.barrier(np.array([True, False, True]))
    assert not one.read_alike(lanes, 4)
