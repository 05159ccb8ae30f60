"""Lab 09: caching allocators with one rule changed, each a mistake by which a wrong replay is recognized."""

from __future__ import annotations

from collections.abc import Sequence

from labkit.exercises.lab09.allocator import Event
from labkit.simdevice import CachingAllocator, rounded, segment_size
from labkit.spec import MiB

Row = tuple[int, int, int, int]
"""allocated_bytes, reserved_bytes, n_mallocs, n_frees."""


class NotRounded(CachingAllocator):
    rounded = staticmethod(lambda n_bytes: n_bytes)


class RoundedPastMultiples(CachingAllocator):
    """A multiple of 512 bytes gets 512 bytes more."""

    rounded = staticmethod(lambda n_bytes: (n_bytes // 512 + 1) * 512)


class ExactSegments(CachingAllocator):
    """No segments of 20 MiB."""

    segment_size = staticmethod(lambda n_bytes: max(2 * MiB, -(-n_bytes // (2 * MiB)) * 2 * MiB))


class UnroundedSegments(CachingAllocator):
    """A segment of its own is exactly as large as the request."""

    segment_size = staticmethod(lambda n_bytes: segment_size(n_bytes) if n_bytes < 10 * MiB else n_bytes)


class MiBIsAMillion(CachingAllocator):
    """All limits and segments in multiples of 10^6 bytes."""

    is_small = staticmethod(lambda n_bytes: n_bytes <= 10**6)

    @staticmethod
    def segment_size(n_bytes: int) -> int:
        if n_bytes <= 10**6:
            return 2 * 10**6
        return 20 * 10**6 if n_bytes < 10**7 else -(-n_bytes // (2 * 10**6)) * 2 * 10**6

    def splits(self, small: bool, rest_bytes: int) -> bool:
        return rest_bytes >= 512 if small else rest_bytes > 10**6


class OneMiBIsLarge(CachingAllocator):
    is_small = staticmethod(lambda n_bytes: n_bytes < MiB)
    segment_size = staticmethod(lambda n_bytes: 20 * MiB if n_bytes == MiB else segment_size(n_bytes))


class TenMiBShare(CachingAllocator):
    """A request of exactly 10 MiB gets a segment of 20."""

    segment_size = staticmethod(lambda n_bytes: 20 * MiB if n_bytes == 10 * MiB else segment_size(n_bytes))


class OnePool(CachingAllocator):
    """Whoever comes gets the best block of all; what is split off depends on the segment."""

    def fitting(self, wanted: int, stream: int) -> list:
        return [
            block
            for segment in self.segments.values()
            for block in segment.blocks
            if block.requested_bytes is None and block.nbytes >= wanted
        ]


class OnePoolSplitByRequest(OnePool):
    """The same, and what is split off depends on the request."""

    _wanted = 0

    def find(self, wanted: int, stream: int) -> object:
        self._wanted = wanted
        return super().find(wanted, stream)

    def splits(self, small: bool, rest_bytes: int) -> bool:
        return super().splits(self.is_small(self._wanted), rest_bytes)


class OnePoolOfSmall(CachingAllocator):
    is_small = staticmethod(lambda n_bytes: True)


class OnePoolOfLarge(CachingAllocator):
    is_small = staticmethod(lambda n_bytes: False)


class SplitsAlways(CachingAllocator):
    def splits(self, small: bool, rest_bytes: int) -> bool:
        return rest_bytes > 0


class LeavesSmallestRest(CachingAllocator):
    """Splits off more than 512 bytes of the small pool, not just as many."""

    def splits(self, small: bool, rest_bytes: int) -> bool:
        return super().splits(small, rest_bytes) and not (small and rest_bytes == 512)


class SplitsOneMiB(CachingAllocator):
    """Splits off 1 MiB of the large pool, not only more."""

    def splits(self, small: bool, rest_bytes: int) -> bool:
        return super().splits(small, rest_bytes) or (not small and rest_bytes == MiB)


class NeverSplits(CachingAllocator):
    def splits(self, small: bool, rest_bytes: int) -> bool:
        return False


class NeverJoins(CachingAllocator):
    def join(self, blocks: list, block: object) -> None:
        pass


class JoinsToTheRight(CachingAllocator):
    def join(self, blocks: list, block: object) -> None:
        after = blocks.index(block) + 1
        if after < len(blocks) and blocks[after].requested_bytes is None:
            block.nbytes += blocks.pop(after).nbytes


class JoinsToTheLeft(CachingAllocator):
    def join(self, blocks: list, block: object) -> None:
        at = blocks.index(block)
        if at and blocks[at - 1].requested_bytes is None:
            blocks[at - 1].nbytes += blocks.pop(at).nbytes


class FirstFit(CachingAllocator):
    def find(self, wanted: int, stream: int) -> object:
        return next(iter(self.fitting(wanted, stream)), None)


class LastOfEquals(CachingAllocator):
    """The best fit, and of equals the youngest."""

    def find(self, wanted: int, stream: int) -> object:
        return min(reversed(self.fitting(wanted, stream)), key=lambda block: block.nbytes, default=None)


class LastOfEqualsInASegment(CachingAllocator):
    """The best fit, and of equals the last one in the oldest segment."""

    def find(self, wanted: int, stream: int) -> object:
        return min(
            self.fitting(wanted, stream), key=lambda block: (block.nbytes, block.segment, -block.start), default=None
        )


class TakesTheEnd(CachingAllocator):
    """The request takes the end of the block that is found, and what is left stays in front of it."""

    def _split(self, block: object, wanted: int) -> None:
        blocks = self.segments[block.segment].blocks
        n_before = len(blocks)
        super()._split(block, wanted)
        if len(blocks) > n_before:
            at = blocks.index(block)
            rest = blocks[at + 1]
            rest.start, block.start = block.start, block.start + rest.nbytes
            blocks[at : at + 2] = [rest, block]


class WorstFit(CachingAllocator):
    def find(self, wanted: int, stream: int) -> object:
        return max(self.fitting(wanted, stream), key=lambda block: block.nbytes, default=None)


class KeepsEverything(CachingAllocator):
    def empty_cache(self) -> int:
        return 0


class KeepsSmallSegments(CachingAllocator):
    """empty_cache goes through one pool alone."""

    kept_pool_is_small = True

    def empty_cache(self) -> int:
        kept = {number: one for number, one in self.segments.items() if one.small == self.kept_pool_is_small}
        self.segments = {number: one for number, one in self.segments.items() if number not in kept}
        n_given_back = super().empty_cache()
        self.segments = dict(sorted((kept | self.segments).items()))
        return n_given_back


class KeepsLargeSegments(KeepsSmallSegments):
    kept_pool_is_small = False


def rows_of(allocator: CachingAllocator, trace: Sequence[Event]) -> list[Row]:
    """The figures after each event."""
    tickets, rows = {}, []
    for kind, ticket, n_bytes in trace:
        if kind == "malloc":
            tickets[ticket] = allocator.malloc(n_bytes)
        elif kind == "free":
            allocator.free(tickets.pop(ticket))
        else:
            allocator.empty_cache()
        one = allocator.figures
        rows.append((one.allocated_bytes, one.reserved_bytes, one.n_mallocs, one.n_frees))
    return rows


def rounded_requests(trace: Sequence[Event]) -> list[int]:
    """The sum of the rounded requests in use after each event: allocated, if every block were split to size."""
    live: dict[int, int] = {}
    sums = []
    for kind, ticket, n_bytes in trace:
        if kind == "malloc":
            live[ticket] = rounded(n_bytes)
        elif kind == "free":
            live.pop(ticket)
        sums.append(sum(live.values()))
    return sums
