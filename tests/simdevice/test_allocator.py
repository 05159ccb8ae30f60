"""The caching allocator: PyTorch's rules one by one, what it costs on the device, and when it gives up."""

from __future__ import annotations

import pytest
import torch

from labkit.simdevice import CachingAllocator, Machine, NoRoom, SimDevice, as_plain, from_plain, timeline_of
from labkit.spec import KiB, MiB


def after(*requests: int) -> CachingAllocator:
    allocator = CachingAllocator()
    for n_bytes in requests:
        allocator.malloc(n_bytes)
    return allocator


@pytest.mark.parametrize(
    ("n_bytes", "allocated", "reserved"),
    [
        (1, 512, 2 * MiB),
        (512, 512, 2 * MiB),
        (513, 1024, 2 * MiB),
        (MiB, MiB, 2 * MiB),
        (MiB + 1, MiB + 512, 20 * MiB),
        (10 * MiB - 512, 10 * MiB - 512, 20 * MiB),
        (10 * MiB, 10 * MiB, 10 * MiB),
        # From 10 MiB on, what is left over of a segment is less than 2 MiB; it is split off only beyond 1 MiB.
        (11 * MiB, 12 * MiB, 12 * MiB),
        (11 * MiB - 512, 11 * MiB - 512, 12 * MiB),
    ],
)
def test_the_size_of_the_block_and_of_its_segment(n_bytes: int, allocated: int, reserved: int) -> None:
    figures = after(n_bytes).figures
    assert (figures.allocated_bytes, figures.requested_bytes) == (allocated, n_bytes)
    assert (figures.reserved_bytes, figures.n_mallocs) == (reserved, 1)


def test_nothing_takes_nothing() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.malloc(0))
    assert allocator.figures.n_mallocs == allocator.figures.reserved_bytes == 0
    with pytest.raises(ValueError, match="0 or more"):
        allocator.malloc(-1)
    with pytest.raises(KeyError):
        allocator.free(7)


def test_small_and_large_blocks_and_streams_keep_apart() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.malloc(5 * MiB))
    allocator.malloc(1000)
    allocator.malloc(5 * MiB, stream=1)
    assert allocator.figures.n_mallocs == 3
    allocator.malloc(20 * MiB)
    assert allocator.figures.n_mallocs == 3, "the freed 5 MiB have become 20 MiB again"


def test_the_smallest_block_that_fits_is_taken_and_split() -> None:
    allocator = CachingAllocator()
    wide, narrow = allocator.malloc(30 * MiB), allocator.malloc(12 * MiB)
    allocator.free(wide)
    allocator.free(narrow)
    allocator.malloc(11 * MiB - KiB)
    assert [[block.nbytes for block in one.blocks] for one in allocator.segments.values()] == [
        [30 * MiB],
        [11 * MiB - KiB, MiB + KiB],
    ]
    assert allocator.figures.n_mallocs == 2


def test_free_neighbours_join_and_those_in_use_do_not() -> None:
    allocator = CachingAllocator()
    tickets = [allocator.malloc(6 * MiB) for _ in range(3)]
    (segment,) = allocator.segments.values()
    assert len(segment.blocks) == 4
    allocator.free(tickets[0])
    allocator.free(tickets[2])
    assert [block.nbytes // MiB for block in segment.blocks] == [6, 6, 8]
    allocator.malloc(9 * MiB)
    assert allocator.figures.n_mallocs == 2, "14 MiB are free, but not in one piece"
    allocator.free(tickets[1])
    assert [block.nbytes // MiB for block in segment.blocks] == [20]


def test_empty_cache_gives_back_whole_segments_only() -> None:
    allocator = CachingAllocator()
    kept, dropped = allocator.malloc(6 * MiB), allocator.malloc(15 * MiB)
    allocator.free(allocator.malloc(6 * MiB))
    allocator.free(dropped)
    assert allocator.empty_cache() == 1
    assert allocator.figures.reserved_bytes == 20 * MiB and allocator.figures.n_frees == 1
    allocator.free(kept)
    assert allocator.empty_cache() == 1 and allocator.figures.reserved_bytes == 0


def test_a_full_device_gives_up_only_after_the_cache_is_emptied() -> None:
    calls: list[str] = []
    allocator = CachingAllocator(40 * MiB, calls.append)
    allocator.free(allocator.malloc(20 * MiB))
    allocator.malloc(30 * MiB)
    assert calls == ["cudaMalloc", "cudaFree", "cudaMalloc"]
    allocator.malloc(6 * KiB)
    with pytest.raises(NoRoom, match=r"8,388,608 of 41,943,040 bytes are free; 2,091,008 more are reserved"):
        allocator.malloc(10 * MiB)


COSTLY = Machine(caching_allocator=True, malloc_s=1e-3, free_s=2e-3, memory_bytes=64 * MiB)


def test_the_device_pays_for_segments_and_waits_before_one_goes() -> None:
    with SimDevice(COSTLY) as sim:
        x = torch.empty(3 * MiB, dtype=torch.uint8, device=sim.device)
        assert sim.now_s == pytest.approx(1e-3)
        del x
        x = torch.empty(2 * MiB, dtype=torch.uint8, device=sim.device)
        assert sim.now_s == pytest.approx(1e-3), "the second one is served from the cache"
        assert (sim.memory_allocated(), sim.memory_reserved()) == (2 * MiB, 20 * MiB)
        x.fill_(1)
        busy_until_s = sim.clock.done_s()
        del x
        sim.empty_cache()
        assert sim.now_s == pytest.approx(busy_until_s + 2e-3)
        assert sim.memory_reserved() == 0 and sim.max_memory_reserved() == 20 * MiB
        stats = sim.memory_stats()
    assert (stats["num_device_alloc"], stats["num_device_free"]) == (1, 1)
    assert [span.name for span in sim.trace if span.stream < 0] == ["cudaMalloc", "cudaFree"]
    again = timeline_of(from_plain(as_plain(sim.commands)), COSTLY)
    assert again.clock.host_s == sim.now_s


def test_out_of_memory_tells_what_is_reserved_and_the_program_goes_on() -> None:
    with SimDevice(COSTLY) as sim:
        kept = torch.empty(6 * MiB, dtype=torch.uint8, device=sim.device)
        with pytest.raises(torch.cuda.OutOfMemoryError, match="14,680,064 more are reserved but unallocated"):
            torch.empty(50 * MiB, dtype=torch.uint8, device=sim.device)
        assert sim.memory_allocated() == 6 * MiB and kept.numel() == 6 * MiB


def test_by_the_byte_nothing_is_cached() -> None:
    with SimDevice() as sim:
        x = torch.zeros(1000, device=sim.device)
        assert sim.memory_reserved() == sim.memory_allocated() == 4000
        sim.empty_cache()
        assert sim.memory_stats()["num_device_alloc"] == 0 and sim.memory_stats()["requested_bytes.all.current"] == 4000
        del x
