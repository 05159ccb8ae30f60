"""Machine code for chips that are not there: what a kernel takes, as NVIDIA's own tool reads it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from labkit.simt import CudaCompileError, SourceRefused
from labkit.simt.cubin import Resources, compile_cubin, resources
from tests.lanes import require_package
from tests.simt.harness import require_nvrtc

SOURCE = r"""
__global__ void __launch_bounds__(1024, 2) squeezed(float* x, int n) {
  float a[48];
  #pragma unroll
  for (int i = 0; i < 48; ++i) a[i] = x[i * n];
  #pragma unroll
  for (int i = 0; i < 48; ++i) x[i * n + a[47 - i] > 0] = a[i] * a[47 - i];
}

__global__ void shared(float* x) {
  __shared__ float tile[100];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[99 - threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    require_nvrtc()


@pytest.mark.parametrize("arch", [80, 90, 100, 120])
def test_registers_stack_and_shared_memory_are_those_of_cuobjdump(arch: int, tmp_path: Path) -> None:
    require_package("triton")
    from triton import knobs

    cubin = compile_cubin(SOURCE, arch)
    (tmp_path / "kernels.cubin").write_bytes(cubin.data)
    command = [knobs.nvidia.cuobjdump.path, "-res-usage", str(tmp_path / "kernels.cubin")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = {
        re.sub(r"_Z\d+([a-z]+)P.*", r"\1", name): Resources(int(registers), int(stack), int(shared))
        for name, registers, stack, shared in re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", text)
    }
    assert cubin.kernels == theirs and set(theirs) == {"squeezed", "shared"}


def test_what_does_not_fit_into_registers_lies_on_the_stack() -> None:
    kernels = compile_cubin(SOURCE, 80).kernels
    assert kernels["squeezed"].stack_bytes > 0 and kernels["squeezed"].registers == 32
    assert kernels["shared"].stack_bytes == 0 and kernels["shared"].shared_bytes == 400
    # The kibibyte of the system stands in the file from sm_90 on.
    assert compile_cubin(SOURCE, 90).kernels["shared"].shared_bytes == 1424


def test_errors_are_those_of_the_other_compiler() -> None:
    with pytest.raises(CudaCompileError, match="line 1"):
        compile_cubin("__global__ void k(int* x) { *x = y; }", 90)
    with pytest.raises(SourceRefused):
        compile_cubin('#include "/etc/hostname"\n__global__ void k() {}', 90)
    with pytest.raises(ValueError, match="no cubin"):
        resources(b"PTX")
