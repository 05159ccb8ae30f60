"""PyTorch's caching allocator, as a model: which blocks it hands out, and when it asks the driver for more.

The rules and the constants are those of c10/cuda/CUDACachingAllocator.cpp with its default settings (no expandable
segments, no max_split_size). No memory is behind the blocks, and nothing is timed here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from labkit.spec import MiB

GRAIN_BYTES = 512
"""Every request is rounded up to a multiple of this, and is at least this."""
MOST_SMALL_BYTES = MiB
"""Requests up to this size come from the small pool, larger ones from the large pool."""
SMALL_SEGMENT_BYTES = 2 * MiB
LARGE_SEGMENT_BYTES = 20 * MiB
LEAST_OWN_BYTES = 10 * MiB
"""From this size on a request gets a segment of its own size when it needs a new one, in steps of OWN_GRAIN_BYTES."""
OWN_GRAIN_BYTES = 2 * MiB


class NoRoom(MemoryError):
    """The device cannot give the segment that a request needs, even after all unused ones have been given back."""


@dataclass
class Block:
    """A piece of a segment. requested_bytes: what its user asked for, None while it is free.

    Block(segment=1, start=0, nbytes=512, requested_bytes=500)
    """

    segment: int
    start: int
    nbytes: int
    requested_bytes: int | None = None


@dataclass
class Segment:
    """One piece of memory from the driver, cut into blocks that lie in order and leave no gap.

    Segment(number=1, nbytes=2097152, small=True, stream=0, blocks=[Block(1, 0, 2097152)])
    """

    number: int
    nbytes: int
    small: bool
    stream: int
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class Figures:
    """allocated: in blocks that are in use; requested: before rounding; reserved: in segments. All in bytes.

        Figures(allocated_bytes=512, requested_bytes=500, reserved_bytes=2097152, n_mallocs=1)

    n_mallocs and n_frees count the driver's calls so far.
    """

    allocated_bytes: int = 0
    requested_bytes: int = 0
    reserved_bytes: int = 0
    n_mallocs: int = 0
    n_frees: int = 0


def is_small(n_bytes: int) -> bool:
    """Whether a block of so many bytes comes from the small pool."""
    return n_bytes <= MOST_SMALL_BYTES


def rounded(n_bytes: int) -> int:
    """The size of the block that a request of so many bytes asks for."""
    return max(1, -(-n_bytes // GRAIN_BYTES)) * GRAIN_BYTES


def segment_size(n_bytes: int) -> int:
    """The size of the segment that the driver is asked for when a block of so many bytes finds no room."""
    if is_small(n_bytes):
        return SMALL_SEGMENT_BYTES
    if n_bytes < LEAST_OWN_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-n_bytes // OWN_GRAIN_BYTES) * OWN_GRAIN_BYTES


class CachingAllocator:
    """malloc returns a ticket that free takes. capacity_bytes: what the device has for segments; None is no limit.

    on_driver_call: told "cudaMalloc" or "cudaFree", once for each such call. The rules are methods, so that other rules
    can be tried.
    """

    rounded = staticmethod(rounded)
    segment_size = staticmethod(segment_size)
    is_small = staticmethod(is_small)

    def __init__(
        self, capacity_bytes: int | None = None, on_driver_call: Callable[[str], None] = lambda name: None
    ) -> None:
        self.segments: dict[int, Segment] = {}
        self.figures = Figures()
        self._capacity_bytes = capacity_bytes
        self._on_driver_call = on_driver_call
        self._used: dict[int, Block | None] = {}
        self._n_segments = self._n_tickets = 0

    def malloc(self, n_bytes: int, stream: int = 0) -> int:
        """A ticket for a block of at least so many bytes. Raises NoRoom, and ValueError for a negative size."""
        if n_bytes < 0:
            raise ValueError(f"memory of {n_bytes} bytes was asked for: a size is 0 or more")
        self._n_tickets += 1
        if n_bytes == 0:
            self._used[self._n_tickets] = None
            return self._n_tickets
        wanted = self.rounded(n_bytes)
        block = self.find(wanted, stream) or self._new_segment(wanted, stream)
        self._split(block, wanted)
        block.requested_bytes = n_bytes
        self._used[self._n_tickets] = block
        self._count(allocated_bytes=block.nbytes, requested_bytes=n_bytes)
        return self._n_tickets

    def free(self, ticket: int) -> None:
        """Take a block back, and join it with free neighbours. Raises KeyError for a ticket that is not in use."""
        block = self._used.pop(ticket)
        if block is None:
            return
        self._count(allocated_bytes=-block.nbytes, requested_bytes=-block.requested_bytes)
        block.requested_bytes = None
        self.join(self.segments[block.segment].blocks, block)

    def join(self, blocks: list[Block], block: Block) -> None:
        """Make one of a free block and its free neighbours among the blocks of its segment."""
        at = blocks.index(block)
        for left in (at, at - 1):
            if 0 <= left < len(blocks) - 1 and blocks[left].requested_bytes is blocks[left + 1].requested_bytes is None:
                blocks[left].nbytes += blocks.pop(left + 1).nbytes

    def size_of(self, ticket: int) -> int:
        """The bytes of the block that a ticket stands for, with whatever was too little to be split off."""
        block = self._used[ticket]
        return 0 if block is None else block.nbytes

    def empty_cache(self) -> int:
        """Give back every segment in which nothing is in use; returns how many these were."""
        empty = [
            one for one in self.segments.values() if len(one.blocks) == 1 and one.blocks[0].requested_bytes is None
        ]
        for segment in empty:
            del self.segments[segment.number]
            self._count(reserved_bytes=-segment.nbytes, n_frees=1)
            self._on_driver_call("cudaFree")
        return len(empty)

    def find(self, wanted: int, stream: int) -> Block | None:
        """The free block that a request for so many bytes is served from: the best fit, None if nothing fits."""
        # Of several of one size, the one at the lowest address: in the oldest segment, in this model.
        return min(
            self.fitting(wanted, stream), key=lambda block: (block.nbytes, block.segment, block.start), default=None
        )

    def fitting(self, wanted: int, stream: int) -> list[Block]:
        """The free blocks of the pool and the stream that are large enough, by address."""
        small = self.is_small(wanted)
        return [
            block
            for segment in self.segments.values()
            if segment.small == small and segment.stream == stream
            for block in segment.blocks
            if block.requested_bytes is None and block.nbytes >= wanted
        ]

    def splits(self, small: bool, rest_bytes: int) -> bool:
        """Whether what a request leaves of a block becomes a block of its own."""
        return rest_bytes >= GRAIN_BYTES if small else rest_bytes > MOST_SMALL_BYTES

    def _new_segment(self, wanted: int, stream: int) -> Block:
        n_bytes = self.segment_size(wanted)
        if not self._fits(n_bytes):
            self.empty_cache()
        if not self._fits(n_bytes):
            reserved, used = self.figures.reserved_bytes, self.figures.allocated_bytes
            raise NoRoom(
                f"a segment of {n_bytes:,} bytes is needed, and {self._capacity_bytes - reserved:,} of "
                f"{self._capacity_bytes:,} bytes are free; {reserved - used:,} more are reserved but unallocated"
            )
        self._n_segments += 1
        block = Block(self._n_segments, 0, n_bytes)
        self.segments[self._n_segments] = Segment(self._n_segments, n_bytes, self.is_small(wanted), stream, [block])
        self._count(reserved_bytes=n_bytes, n_mallocs=1)
        self._on_driver_call("cudaMalloc")
        return block

    def _fits(self, n_bytes: int) -> bool:
        return self._capacity_bytes is None or self.figures.reserved_bytes + n_bytes <= self._capacity_bytes

    def _split(self, block: Block, wanted: int) -> None:
        segment, rest = self.segments[block.segment], block.nbytes - wanted
        if self.splits(segment.small, rest):
            block.nbytes = wanted
            at = segment.blocks.index(block)
            segment.blocks.insert(at + 1, Block(segment.number, block.start + wanted, rest))

    def _count(self, **more: int) -> None:
        old = self.figures
        self.figures = Figures(**{**vars(old), **{name: getattr(old, name) + by for name, by in more.items()}})
