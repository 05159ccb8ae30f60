"""Loaded before any job of a lab on CUDA C++: NVRTC, and what executes the PTX that it makes.

One kernel is compiled and launched here, so that no fork pays for a first time. Nothing of it is a student's or is
judged. The compiler leaves no thread.
"""

from __future__ import annotations

from contextlib import suppress

import torch

from labkit.meters.cuda import measure_cuda
from labkit.simt import NvrtcMissing, nvrtc
from labkit.simt.compiling import compile_cuda

_SOURCE = """
__global__ void rehearsed(const float* x, float* y, int n) {
  __shared__ float tile[33];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.f;
  __syncthreads();
  if (i < n) y[i] = tile[threadIdx.x] * 2.f;
}
"""

# Without NVRTC there are no kernels, which a job that has some will be told.
with suppress(NvrtcMissing):
    # By itself first, because what NVRTC builds in a process of its own is lost with that.
    nvrtc.compile_source(_SOURCE, "kernel.cu", ["--gpu-architecture=compute_80", "-lineinfo"])
    with measure_cuda({}, {}):
        compile_cuda(_SOURCE)["rehearsed"].launch(2, 32, torch.ones(33), torch.empty(33), 33)
