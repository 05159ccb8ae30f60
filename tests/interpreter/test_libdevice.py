"""Every function of our table is one of CUDA's library, and what is not in it is named."""

from __future__ import annotations

import inspect
import re

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed; the interpreter is its")

import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as of_cuda
from triton.runtime.errors import InterpreterError

from labkit import interpreter
from labkit.interpreter.libdevice import FUNCTIONS, plain_name

interpreter.enable()


@triton.jit
def tanh_kernel(x_ptr, out_ptr, n: tl.constexpr):
    offs = tl.arange(0, n)
    tl.store(out_ptr + offs, libdevice.tanh(tl.load(x_ptr + offs)))


@triton.jit
def bessel_kernel(x_ptr, out_ptr, n: tl.constexpr):
    offs = tl.arange(0, n)
    tl.store(out_ptr + offs, libdevice.j0(tl.load(x_ptr + offs)))


def test_every_entry_is_a_function_of_the_library() -> None:
    symbols = re.findall(r'"(__nv_\w+)"', inspect.getsource(of_cuda))
    assert set(FUNCTIONS) <= {plain_name(symbol) for symbol in symbols}


@pytest.mark.parametrize(
    ("symbol", "name"),
    [("__nv_tanhf", "tanh"), ("__nv_tanh", "tanh"), ("__nv_erff", "erf"), ("__nv_fast_expf", "fast_expf")],
)
def test_plain_names(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name


def test_double_precision() -> None:
    x = torch.linspace(-2, 2, 16, dtype=torch.float64)
    out = torch.empty_like(x)
    tanh_kernel[(1,)](x, out, 16)
    torch.testing.assert_close(out, x.tanh(), rtol=1e-15, atol=0)


def test_a_type_that_the_library_has_no_function_for() -> None:
    with pytest.raises(InterpreterError) as error:
        tanh_kernel[(1,)](torch.zeros(16, dtype=torch.float16), torch.zeros(16), 16)
    assert (
        str(error.value)
        .splitlines()[0]
        .endswith(": TypeError: libdevice.tanh takes no fp16: convert first, x.to(tl.float32)")
    )


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(InterpreterError) as error:
        bessel_kernel[(1,)](torch.zeros(16), torch.zeros(16), 16)
    assert (
        ": NotImplementedError: libdevice function __nv_j0f is not available on a CPU; these are: abs, acos, "
    ) in str(error.value).splitlines()[0]
