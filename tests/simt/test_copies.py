"""Asynchronous copies: what is read before a wait for it is a fault, and a pipeline that waits in time is none."""

from __future__ import annotations

import pytest
import torch

from labkit.simt import LaunchFault, compile_cuda
from tests.simt.harness import require_nvrtc

PIPELINE = r"""
#include <cuda_pipeline.h>
__global__ void pipeline(const float* x, float* y, int n_pieces) {
  __shared__ float stage[2][64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &x[t], 4);
  __pipeline_commit();
  for (int i = 0; i < n_pieces; ++i) {
    if (i + 1 < n_pieces) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &x[64 * (i + 1) + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    y[64 * i + t] = stage[i % 2][63 - t];
    __syncthreads();
  }
}
"""


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    require_nvrtc()


def launched(source: str, n_pieces: int = 5, grid: int = 1):
    x, y = torch.arange(64.0 * n_pieces), torch.zeros(64 * n_pieces)
    profile = compile_cuda(source)["pipeline"].launch(grid, 64, x, y, n_pieces)
    return x, y, profile


def test_a_pipeline_of_two_stages_that_waits_in_time_is_right() -> None:
    x, y, profile = launched(PIPELINE)
    assert torch.equal(y, x.view(5, 64).flip(1).reshape(-1)) and profile.faults == ()


@pytest.mark.parametrize(
    ("change", "who"),
    [
        (("__pipeline_wait_prior(1);", ""), "thread 63"),
        (("__pipeline_wait_prior(1);", "__pipeline_wait_prior(2);"), "thread 63"),
        (("stage[i % 2][63 - t];", "stage[(i + 1) % 2][t];"), "the same thread"),
    ],
)
def test_what_is_read_too_early_names_the_copy(change: tuple[str, str], who: str) -> None:
    with pytest.raises(LaunchFault) as caught:
        launched(PIPELINE.replace(*change))
    pending = [fault for fault in caught.value.faults if fault.kind == "pending copy"]
    assert pending and pending[0].line == 13 and pending[0].thread == (0, 0, 0)
    assert pending[0].text.endswith(f"to which {who} has begun a copy and not waited for it")
    assert pending[0].text.startswith("reads stage[")


def test_a_store_to_where_a_copy_goes_is_one_too() -> None:
    with pytest.raises(LaunchFault, match=r"pending copy: writes stage\[0\]"):
        launched(PIPELINE.replace("  for (int i", "  stage[0][t] = 1;\n  for (int i"))


def test_waiting_for_all_is_enough_whatever_was_committed() -> None:
    waits = 'asm volatile("cp.async.wait_all;");'
    source = PIPELINE.replace("__pipeline_wait_prior(1);", waits)
    _, _, profile = launched(source)
    assert profile.faults == ()
