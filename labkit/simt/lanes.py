"""The threads of one chunk of a launch as an array of lanes, [block, thread], and masks over it.

A value that is the same for all blocks has shape [1, n_threads], one that is the same for all threads of a block
[n_blocks, 1], a constant [1, 1]: arithmetic keeps that shape by itself, so that a loop counter costs one element and
an index into shared memory one block's. Block sizes are padded to whole warps; padding lanes are never active.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

WARP = 32
Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Lanes:
    """Blocks `first_block` … of a grid. n_threads: lanes of one block, a multiple of 32; n_used: those that exist."""

    grid: Dim3
    block: Dim3
    first_block: int
    n_blocks: int

    @cached_property
    def n_used(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def n_warps(self) -> int:
        """Warps of one block."""
        return -(-self.n_used // WARP)

    @cached_property
    def n_threads(self) -> int:
        return self.n_warps * WARP

    @cached_property
    def thread_ids(self) -> np.ndarray:
        """[1, n_threads] int64: 0, 1, 2, …"""
        return np.arange(self.n_threads, dtype=np.int64)[None]

    @cached_property
    def block_ids(self) -> np.ndarray:
        """[n_blocks, 1] int64: the block's number in the whole grid."""
        return np.arange(self.first_block, self.first_block + self.n_blocks, dtype=np.int64)[:, None]

    @cached_property
    def rows(self) -> np.ndarray:
        """[n_blocks, 1] int64: the block's number in this chunk."""
        return np.arange(self.n_blocks, dtype=np.int64)[:, None]

    @cached_property
    def everyone(self) -> Mask:
        """All lanes but the padding."""
        if self.n_used == self.n_threads:
            return Mask(self, np.ones((1, 1), bool))
        return Mask(self, self.thread_ids < self.n_used)

    @cached_property
    def special(self) -> dict[str, np.ndarray]:
        """The registers that the hardware fills, uint32, in their smallest shape."""
        (x, y, _), thread, block = self.block, self.thread_ids, self.block_ids
        values = {
            "%tid.x": thread % x,
            "%tid.y": thread // x % y,
            "%tid.z": thread // (x * y),
            "%ctaid.x": block % self.grid[0],
            "%ctaid.y": block // self.grid[0] % self.grid[1],
            "%ctaid.z": block // (self.grid[0] * self.grid[1]),
            "%laneid": thread % WARP,
            "%warpid": thread // WARP,
            "%nwarpid": self.n_warps,
            **{f"%ntid.{axis}": size for axis, size in zip("xyz", self.block, strict=True)},
            **{f"%nctaid.{axis}": size for axis, size in zip("xyz", self.grid, strict=True)},
            "%gridid": 1,
            "%smid": 0,
            "%nsmid": 1,
        }
        lane = np.uint64(1) << (thread % WARP).astype(np.uint64)
        masks = {"eq": lane, "lt": lane - 1, "le": lane * 2 - 1, "gt": ~(lane * 2 - 1), "ge": ~(lane - 1)}
        values |= {f"%lanemask_{name}": value & 0xFFFFFFFF for name, value in masks.items()}
        return {name: np.atleast_2d(np.asarray(value)).astype(np.uint32) for name, value in values.items()}

    def where(self, row: int, thread: int) -> tuple[Dim3, Dim3]:
        """(blockIdx, threadIdx) of a lane."""
        return _coordinates(self.first_block + row, self.grid), _coordinates(thread, self.block)


def _coordinates(index: int, extent: Dim3) -> Dim3:
    return index % extent[0], index // extent[0] % extent[1], index // (extent[0] * extent[1])


def stretched(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """np.broadcast_to, for less where the array has the shape already."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


class Mask:
    """Which lanes take part. array: bool of a shape that broadcasts to [n_blocks, n_threads]; it is never changed."""

    def __init__(self, lanes: Lanes, array: np.ndarray) -> None:
        self.lanes = lanes
        self.array = array

    @cached_property
    def is_all(self) -> bool:
        """Every lane, and there is no padding."""
        return bool(self.array.all())

    @cached_property
    def any(self) -> bool:
        return bool(self.array.any())

    @cached_property
    def full(self) -> np.ndarray:
        """[n_blocks, n_threads]."""
        return stretched(self.array, (self.lanes.n_blocks, self.lanes.n_threads))

    @cached_property
    def by_warp(self) -> np.ndarray:
        """[rows, n_warps, 32], rows 1 where all blocks are alike."""
        rows = self.array.shape[0]
        return stretched(self.array, (rows, self.lanes.n_threads)).reshape(rows, self.lanes.n_warps, WARP)

    @property
    def _alike(self) -> int:
        return self.lanes.n_blocks // self.array.shape[0]

    @cached_property
    def n_lanes(self) -> int:
        return int(np.count_nonzero(self.by_warp)) * self._alike

    @cached_property
    def n_warps(self) -> int:
        """Warps with at least one lane."""
        return int(np.count_nonzero(self.by_warp.any(2))) * self._alike

    @cached_property
    def index(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows, threads) of the lanes, in their order."""
        return np.nonzero(self.full)

    @cached_property
    def flat(self) -> np.ndarray:
        """The lanes' numbers row * n_threads + thread, in their order."""
        return np.flatnonzero(self.full)

    @cached_property
    def by_block(self) -> np.ndarray:
        """[n_blocks] int: lanes of each block."""
        return np.broadcast_to(np.count_nonzero(self.by_warp, axis=(1, 2)), (self.lanes.n_blocks,))

    @cached_property
    def bits(self) -> np.ndarray:
        """[rows, n_warps] uint64: bit i is lane i."""
        return (self.by_warp.astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(2, dtype=np.uint64)

    @cached_property
    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows of the array that differ from one another, how many blocks have each)."""
        if len(self.array) == 1:
            return self.array, np.array([self.lanes.n_blocks])
        found: dict[bytes, list[int]] = {}
        for number, row in enumerate(np.packbits(self.array, axis=1)):
            found.setdefault(row.tobytes(), []).append(number)
        first, counts = zip(*((rows[0], len(rows)) for rows in found.values()), strict=True)
        return self.array[list(first)], np.array(counts) * self._alike

    def needed(self, shape: tuple[int, int]) -> np.ndarray:
        """Of a value of this shape, which elements a lane of the mask looks at."""
        array = self.array
        if array.shape[0] > shape[0]:
            array = array.any(0, keepdims=True)
        if array.shape[1] > shape[1]:
            array = array.any(1, keepdims=True)
        return array

    def covers(self, shape: tuple[int, int]) -> bool:
        """Whether every element of a value of this shape is needed."""
        return self.is_all or bool(self.needed(shape).all())

    def narrowed(self, array: np.ndarray) -> Mask:
        """The lanes of the mask for which `array` is true."""
        return Mask(self.lanes, self.array & array)

    def joined(self, other: Mask) -> Mask:
        """The lanes of either."""
        return Mask(self.lanes, self.array | other.array)
