"""What a cache leaves of the traffic of a tiled matrix product: blocks read from memory, by the order of its tiles.

The model: as many programs as fit on the chip run at the same time and take their steps along the inner dimension
together, each reading one block of A and one of B a step; the next ones start when all are done. One cache serves them
all, holds a fixed number of blocks of equal size, and throws out the block that was not read for longest.

It knows nothing of cache lines, associativity, stores, or programs that run ahead of others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence

Tile = tuple[int, int]
"""Of the result: its row and its column of tiles."""


def read_from_memory(reads: Iterable[Hashable], n_kept: int) -> list[bool]:
    """Of each read in its order, whether the cache did not have it. n_kept: how many blocks the cache holds.

    Raises ValueError for a cache that holds nothing.
    """
    if n_kept < 1:
        raise ValueError(f"a cache that keeps {n_kept} blocks is not one: give it at least one block")
    kept: OrderedDict[Hashable, None] = OrderedDict()
    missed = []
    for block in reads:
        missed.append(block not in kept)
        kept[block] = None
        kept.move_to_end(block)
        if len(kept) > n_kept:
            kept.popitem(last=False)
    return missed


def block_reads(tiles: Sequence[Tile], n_steps: int, at_once: int) -> Iterator[tuple[str, int, int]]:
    """The blocks that are read, in order: ("a", row of tiles, step) and ("b", step, column of tiles).

    tiles: which tile each program computes, in the order in which programs start. n_steps: along the inner dimension.
    at_once: programs that run at the same time.
    """
    for first in range(0, len(tiles), at_once):
        for step in range(n_steps):
            for row, col in tiles[first : first + at_once]:
                yield "a", row, step
                yield "b", step, col


def product_read_bytes(tiles: Sequence[Tile], n_steps: int, at_once: int, n_kept: int, block_bytes: int) -> int:
    """Bytes that a product whose programs take `tiles` in this order reads from memory."""
    return block_bytes * sum(read_from_memory(block_reads(tiles, n_steps, at_once), n_kept))
