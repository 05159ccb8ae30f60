"""What one warp accesses is told lane by lane; the counters of the launch stay what they were."""

from __future__ import annotations

import pytest
import torch

from labkit.simt import WarpAccess, compile_cuda
from tests.simt.harness import require_nvrtc

SOURCE = r"""
__global__ void reversed(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) tile[threadIdx.x] = x[i];
  __syncthreads();
  if (i < n) y[i] = tile[63 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def kernel():
    require_nvrtc()
    return compile_cuda(SOURCE)["reversed"]


def launched(kernel, n: int, watch: tuple[int, int] | None = None, offset: int = 0):
    x, y = torch.arange(float(n + offset)), torch.zeros(n)
    return kernel.launch(-(-n // 64), 64, x[offset:], y, n, watch=watch, check=False)


def test_each_access_of_the_watched_warp_is_noted_in_its_order(kernel) -> None:
    profile = launched(kernel, 128, watch=(1, 0))
    x, tile_in, tile_out, y = profile.accesses
    elements = range(64, 96)
    assert x == WarpAccess(5, "load", "global", "x", 4, 4, tuple(4 * i for i in elements), x.start)
    assert (tile_in.kind, tile_in.space, tile_in.name, tile_in.line) == ("store", "shared", "tile", 5)
    assert tile_out.places == tuple(4 * (63 - i) for i in range(32))
    assert (y.kind, y.name, y.line, y.places) == ("store", "y", 7, x.places)


def test_lanes_that_are_masked_off_have_no_place(kernel) -> None:
    profile = launched(kernel, 70, watch=(1, 0))
    assert profile.accesses[0].active == tuple(range(6))
    assert profile.accesses[0].places[:7] == (256, 260, 264, 268, 272, 276, None)
    assert launched(kernel, 70, watch=(1, 1)).accesses == ()


def test_places_count_from_the_tensor_that_was_given(kernel) -> None:
    access = launched(kernel, 64, watch=(0, 0), offset=3).accesses[0]
    assert access.places[0] == 0 and access.start % 16 == 12


def test_watching_changes_no_counter(kernel) -> None:
    watched, plain = launched(kernel, 128, watch=(0, 0)), launched(kernel, 128)
    assert plain.accesses == () and watched.counters() == plain.counters() and plain.counters()
