"""Atomic sums of packed halves: each half is rounded to its own type after every addition, lane after lane."""

from __future__ import annotations

import pytest
import torch

from labkit.simt import compile_cuda
from tests.simt.harness import require_nvrtc

SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void pairs(__nv_bfloat162* sum, const __nv_bfloat162* x) { atomicAdd(sum, x[threadIdx.x]); }
__global__ void halves(__half2* sum, const __half2* x) { atomicAdd(sum, x[threadIdx.x]); }
__global__ void single(__nv_bfloat16* sum, const __nv_bfloat16* x) { atomicAdd(sum, x[threadIdx.x]); }
"""


@pytest.mark.parametrize(
    ("name", "dtype", "width"),
    [("pairs", torch.bfloat16, 2), ("halves", torch.float16, 2), ("single", torch.bfloat16, 1)],
)
def test_sums_are_those_of_torch_one_after_the_other(name: str, dtype: torch.dtype, width: int) -> None:
    require_nvrtc()
    x = torch.randn(64, width, generator=torch.Generator().manual_seed(3)).to(dtype)
    expected, total = torch.ones(width, dtype=dtype), torch.ones(width, dtype=dtype)
    for row in x:
        expected = expected + row
    kernels = compile_cuda(SOURCE, arch=90)
    profile = kernels[name].launch(1, 64, total, x)
    assert f"bf16{'x2' if width == 2 else ''}" in kernels.ptx or name == "halves"
    assert torch.equal(total, expected)
    assert profile.global_atomic_lanes == 64 and profile.atomic_conflicts == 62
