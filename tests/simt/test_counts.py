"""Counters against published cases and cases worked by hand, line by line."""

from __future__ import annotations

import pytest
import torch

from tests.simt.harness import compiled, launch, random, source

COUNTS = source("counts")


def line_of(text: str) -> int:
    return next(i for i, row in enumerate(COUNTS.splitlines(), 1) if text in row)


@pytest.mark.parametrize(
    ("stride", "offset", "sectors"),
    [(1, 0, 4), (1, 1, 5), (1, 8, 4), (2, 0, 8), (4, 0, 16), (8, 0, 32), (32, 0, 32), (0, 5, 1)],
)
def test_sectors_of_strided_and_shifted_loads(stride: int, offset: int, sectors: int) -> None:
    """CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory": a warp of 4-byte words in a row takes four
    32-byte transactions, misaligned five, at a stride of 2 eight, and one for each lane from a stride of 8 on."""
    x, y = random(2 * 128 * 32 + 8), torch.zeros(256)
    profile = launch(COUNTS, "strided", 2, 128, x, y, stride, offset)
    assert profile.global_load_requests == 8
    assert profile.global_load_sectors == 8 * sectors
    assert profile.global_load_bytes == 256 * 4
    assert (profile.global_store_sectors, profile.global_store_requests) == (32, 8)
    assert profile.line(line_of("x[i * stride + offset]"))["global_load_sectors"] == 8 * sectors


def test_lanes_that_take_no_part_cost_no_sectors() -> None:
    profile = launch(COUNTS, "strided", 1, 9, random(64), torch.zeros(16), 1, 0)
    assert (profile.global_load_sectors, profile.global_load_requests, profile.global_load_bytes) == (2, 1, 36)


def test_wide_accesses() -> None:
    x, v = random(32, dtype=torch.float64), random(32, 4)
    profile = launch(COUNTS, "wide", 1, 32, x, v, torch.zeros_like(x), torch.zeros_like(v))
    assert profile.line(line_of("y[i] = x[i];"))["global_load_sectors"] == 8
    assert profile.line(line_of("w[i] = v[i];"))["global_load_sectors"] == 16


@pytest.mark.parametrize(("stride", "wavefronts"), [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (32, 32), (33, 1)])
def test_bank_conflicts_of_strides(stride: int, wavefronts: int) -> None:
    """CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later: strides of two words are
    two-way conflicts, odd strides none, one word for all lanes is a broadcast."""
    profile = launch(COUNTS, "banks", 3, 32, torch.zeros(32), stride)
    found = profile.line(line_of("s[threadIdx.x * stride]"))
    assert (found["shared_load_wavefronts"], found["shared_load_requests"]) == (3 * wavefronts, 3)


def test_wide_shared_accesses_are_served_in_parts() -> None:
    profile = launch(COUNTS, "wide_banks", 1, 32, torch.zeros(32, 4))
    assert profile.shared_load_wavefronts == profile.shared_store_wavefronts == 4


def test_a_naive_transpose_stores_a_sector_for_each_lane() -> None:
    """An Efficient Matrix Transpose (M. Harris): reads are coalesced, writes go with the stride of a column."""
    profile = launch(COUNTS, "transpose_naive", (2, 2), (32, 32), random(64, 64), torch.zeros(64, 64), 64)
    assert profile.global_load_sectors == 64 * 64 * 4 // 32
    assert profile.global_store_sectors == 64 * 64
    assert profile.global_sectors == 512 + 4096


def test_divergence() -> None:
    x = torch.arange(32, dtype=torch.int32)
    profile = launch(COUNTS, "diverges", 1, 32, x, torch.zeros(32, dtype=torch.int32))
    assert profile.divergent_branches > 5
    loop = profile.line(line_of("for (int i = 0; i < v; i++)"))
    assert loop["thread_instructions"] < 32 * loop["warp_instructions"] / 2
    same = launch(
        COUNTS, "diverges", 1, 32, torch.full((32,), 5, dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
    )
    assert same.divergent_branches == 0
    assert same.inactive_lanes == 0


def test_atomics_of_one_address_wait_for_one_another() -> None:
    bins, x = torch.zeros(32, dtype=torch.int32), torch.arange(64, dtype=torch.int32) % 4
    profile = launch(COUNTS, "conflicts", 1, 64, bins, x)
    assert (profile.global_atomic_requests, profile.global_atomic_lanes) == (2, 64)
    assert profile.atomic_conflicts == 2 * (32 - 4)
    assert bins[:4].tolist() == [16] * 4


def test_flops() -> None:
    x, d = random(96), random(96, dtype=torch.float64)
    profile = launch(COUNTS, "arithmetic", 1, 96, x, d)
    assert profile.line(line_of("fmaf"))["flops"] == 96 * 3
    assert profile.line(line_of("* 3.0"))["flops"] == 96


def test_the_same_launch_counts_the_same() -> None:
    x, y = random(4096 + 8), torch.zeros(256)
    first, second = (launch(COUNTS, "strided", 2, 128, x, y, 2, 1).by_line for _ in range(2))
    assert first == second


def test_chunks_change_no_count(monkeypatch) -> None:
    """Control: with chunks of one block, where arrays have other shapes."""
    from labkit.simt import launch as module

    kernel = compiled(COUNTS)["transpose_naive"]
    arguments = random(64, 64), torch.zeros(64, 64), 64
    whole = kernel.launch((2, 2), (32, 32), *arguments)
    monkeypatch.setattr(module, "CHUNK_LANES", 1)
    assert kernel.launch((2, 2), (32, 32), *arguments).by_line == whole.by_line


def test_the_table_shows_the_source() -> None:
    rows = launch(COUNTS, "wide_banks", 1, 32, torch.zeros(32, 4)).table().splitlines()
    number = line_of("y[threadIdx.x] = s[threadIdx.x ^ 1];")
    assert rows[number].split()[0] == str(number) and "y[threadIdx.x] = s[threadIdx.x ^ 1];" in rows[number]
    assert rows[number].split()[2:4] == ["16", "4"]
