"""Lab 11: one function z = h(f(x), g(y)) as PyTorch runs it, compiled, in CUDA C++ and in Triton: kernels and bytes.

Bytes of the last two are what their threads ask memory for; no cache is in between. Where NVRTC or Triton is missing,
a row says which lab needs it. Nothing is timed.
"""

from __future__ import annotations

import importlib.util
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from labkit import interpreter
from labkit.devices import has_gpu
from labkit.material.lab11_bytes import eager_kernels
from labkit.meters import track_traffic
from labkit.meters.compile import track_compile
from labkit.simt import NvrtcMissing, compile_cuda
from labkit.units import in_bytes

Function = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
CUDA = r"""
__global__ void by_hand(const float* x, const float* y, const float* scale, float* z, int rows, int cols) {
  float of_column = scale[threadIdx.x];  // a thread for each column, a block for some rows
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    float a = x[r * cols + threadIdx.x], b = y[r * cols + threadIdx.x];
    float f = a / (1 + expf(-a)), g = b < 0 ? 0.1f * b : b;
    z[r * cols + threadIdx.x] = fminf(sqrtf(f * f + g * g), 4) * of_column;
  }
}
"""
TRITON = r"""
import triton
import triton.language as tl


@triton.jit
def by_hand(x, y, scale, z, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    column = tl.arange(0, COLS)
    there = (column < cols)[None, :]
    of_column = tl.load(scale + column, mask=column < cols, other=0)  # once for all rows of a program
    place = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * cols + column[None, :]
    a, b = tl.load(x + place, mask=there, other=0), tl.load(y + place, mask=there, other=0)
    f, g = a / (1 + tl.exp(-a)), tl.where(b < 0, 0.1 * b, b)
    tl.store(z + place, tl.minimum(tl.sqrt(f * f + g * g), 4.0) * of_column[None, :], mask=there)
"""
"""A text, as the one above: labkit is imported without Triton as well."""
ROWS, COLS, BLOCKS = 48, 64, 3


@dataclass(frozen=True)
class Way:
    """One way to compute the function. kernels, total_bytes: None where it cannot be measured here, and `lab` can tell.

    Way("Triton, by hand", 1, 37632, lab="12")
    """

    name: str
    kernels: int | None
    total_bytes: int | None
    lab: str = ""


@dataclass(frozen=True)
class FourWays:
    """The rows of the table. ideal_bytes: x, y and scale are read once, z is written once."""

    ways: tuple[Way, ...]
    ideal_bytes: int

    def __str__(self) -> str:
        lines = [f"{'z = h(f(x), g(y))':28}{'kernels':>8}{'bytes':>12}{'x the ideal':>13}"]
        for way in self.ways:
            if way.kernels is None or way.total_bytes is None:
                lines.append(f"{way.name:28}  not measured here: see lab {way.lab}")
                continue
            times = way.total_bytes / self.ideal_bytes
            lines.append(f"{way.name:28}{way.kernels:8}{in_bytes(way.total_bytes):>12}{times:13.2f}")
        return "\n".join(lines)


def four_ways(chain: Function, fused: Function) -> FourWays:
    """Measure `chain` as PyTorch runs it, `fused` compiled, and the two kernels, which have to agree with `chain`."""
    gen = torch.Generator().manual_seed(0)
    x, y = (3 * torch.randn(ROWS, COLS, generator=gen) for _ in range(2))
    scale = torch.rand(COLS, generator=gen) + 0.5
    wanted = chain(x, y, scale)
    eager = eager_kernels(chain, x, y, scale)
    fused(x, y, scale)  # a blank answer says so here, and not from inside the compiler
    torch.compiler.reset()
    with torch.no_grad(), track_compile() as compiled:
        torch.compile(fused)(x, y, scale)
    ways = (
        Way("PyTorch, as it came to mind", len(eager), sum(kernel.total_bytes for kernel in eager)),
        Way("compiled, yours", len(compiled.kernels), compiled.kernel_bytes),
        _cuda(x, y, scale, wanted),
        _triton(x, y, scale, wanted),
    )
    return FourWays(ways, 3 * x.nbytes + scale.nbytes)


def _cuda(x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor, wanted: torch.Tensor) -> Way:
    name, z = "CUDA C++, by hand", torch.empty_like(x)
    try:
        kernel = compile_cuda(CUDA)["by_hand"]
    except NvrtcMissing:
        return Way(name, None, None, "10")
    profile = kernel.launch(BLOCKS, COLS, x, y, scale, z, ROWS, COLS)
    torch.testing.assert_close(z, wanted)
    return Way(name, 1, 32 * profile.global_sectors)


def _triton_kernel() -> Any:
    file, space = "<lab 11, in Triton>", {"__name__": __name__}
    # Triton reads a kernel's source where Python keeps that of cells.
    linecache.cache[file] = (len(TRITON), None, TRITON.splitlines(keepends=True), file)
    exec(compile(TRITON, file, "exec"), space)
    return space["by_hand"]


def _triton(x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor, wanted: torch.Tensor) -> Way:
    name = "Triton, by hand"
    # Beside a GPU the interpreter is lab 12's to ask for, before anything else.
    if importlib.util.find_spec("triton") is None or has_gpu():
        return Way(name, None, None, "12")
    interpreter.enable()
    z = torch.empty_like(x)
    with track_traffic() as traffic:
        _triton_kernel()[(BLOCKS,)](x, y, scale, z, COLS, ROWS=ROWS // BLOCKS, COLS=COLS)
    torch.testing.assert_close(z, wanted)
    return Way(name, len(traffic.launches), traffic.load_bytes + traffic.store_bytes)
