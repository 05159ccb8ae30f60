"""What C's headers give is there without them, and what the compiler says of a host is said of kernels."""

from __future__ import annotations

import math

import pytest
import torch

from labkit.simt import CudaCompileError, compile_cuda
from labkit.simt.cubin import compile_cubin
from labkit.simt.prelude import IN_IT
from tests.simt.harness import require_nvrtc

WIDTHS = """
__global__ void widths(uint8_t* y, const uint32_t* x, uint64_t n, uint m) {
  y[0] = sizeof(int8_t); y[1] = sizeof(int16_t); y[2] = sizeof(int32_t); y[3] = sizeof(int64_t);
  y[4] = sizeof(size_t); y[5] = (uintptr_t)x % 16; y[6] = (uint8_t)(n + m); y[7] = NULL == 0;
}
__global__ void limits(double* y) {
  y[0] = M_PI; y[1] = FLT_MAX; y[2] = DBL_EPSILON; y[3] = INT_MIN; y[4] = INFINITY; y[5] = isnan(NAN);
}
"""


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    require_nvrtc()


@pytest.mark.parametrize("header", ["", *(f"#include <{name}>\n" for name in IN_IT)])
def test_types_and_limits_need_no_header_and_may_have_it(header: str) -> None:
    kernels = compile_cuda(header + WIDTHS)
    y, x = torch.zeros(8, dtype=torch.uint8), torch.zeros(8, dtype=torch.uint32)
    kernels["widths"].launch(1, 1, y, x[1:], 2**63 + 5, 1)
    assert y.tolist() == [1, 2, 4, 8, 8, 4, 6, 1]
    values = torch.zeros(6, dtype=torch.float64)
    kernels["limits"].launch(1, 1, values)
    largest = torch.finfo(torch.float32).max
    assert values.tolist() == [math.pi, largest, 2.0**-52, -(2.0**31), math.inf, 1]


def test_machine_code_knows_them_too() -> None:
    assert compile_cubin("__global__ void k(uint32_t* y) { *y = UINT_MAX; }", 90).kernels["k"].registers


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int main() { return 0; }", "line 1: error: a function needs __global__ or __device__ before it"),
        ("float table[4];", "line 1: error: what is declared outside of functions needs __device__"),
        ("__global__ void k() { k<<<1, 1>>>(); }", "line 1: error: a kernel cannot launch another one here"),
        ("__global__ void k(int* y) {\n  *y = 1;", 'error: at the end of the source: expected a "}"'),
    ],
)
def test_what_concerns_a_host_is_said_in_the_terms_of_kernels(source: str, message: str) -> None:
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda(source)
    assert str(caught.value).startswith(message) and "JIT mode" not in str(caught.value)


SEMICOLON = "__global__ void k(int* y, int n) {{\n  int i = threadIdx.x{}\n\n  // the last one\n  y[i] = n;\n}}\n"


@pytest.mark.parametrize(
    ("source", "message", "row"),
    [
        (SEMICOLON.format(""), 'line 2: error: expected a ";" at the end of this line', "int i = threadIdx.x"),
        (
            SEMICOLON.format("  // x"),
            'line 2: error: expected a ";" at the end of this line',
            "int i = threadIdx.x  // x",
        ),
        ("__global__ void k(int* y) { y[0] = 1 y[1] = 2; }", 'line 1: error: expected a ";"\n', "__global__"),
        (
            "__global__ void k(float* y) {\n  y[0][1] = 2;\n}",
            "line 2: error: a single number has no elements",
            "y[0][1]",
        ),
        (
            "__global__ void k(int* y) {\n  atomicAdd(y[0], 1);\n}",
            "line 2: error: atomicAdd takes the address",
            "atomic",
        ),
        (
            "__global__ void k(float* y) {\n  y[0] = __shfl_down(y[0], 1);\n}",
            'line 2: error: identifier "__shfl_down" is undefined: it is called __shfl_down_sync now',
            "y[0] = __shfl_down",
        ),
    ],
)
def test_what_newcomers_to_cuda_write_is_said_where_and_how_it_is_mended(source: str, message: str, row: str) -> None:
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda(source)
    number = message.split(":")[0]
    assert f"{caught.value}\n".startswith(message) and caught.value.students_line.startswith(f"{number}: {row}")
    with pytest.raises(CudaCompileError, match=number):
        compile_cubin(source, 80)


def test_the_caret_stands_where_the_semicolon_belongs() -> None:
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda(SEMICOLON.format("  // x"))
    _, row, caret = str(caught.value).splitlines()[:3]
    assert row[: caret.index("^")].endswith("threadIdx.x")


def test_of_a_type_that_is_not_known_one_message_is_left() -> None:
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda("__global__ void k(flaot* y, int n) {\n  y[0] = n;\n}")
    assert [one.text for one in caught.value.diagnostics] == ['identifier "flaot" is undefined']
