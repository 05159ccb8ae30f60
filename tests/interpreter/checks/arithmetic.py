"""Arithmetic, comparisons and functions, element by element."""

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime.interpreter import InterpreterBuilder

from tests.interpreter.checks.common import ALL, NARROW, check, patterns, same


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < n)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "div":
        z = x / y
    elif OP == "less":
        z = x < y
    elif OP == "equal":
        z = x == y
    elif OP == "maximum":
        z = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "scaled":
        z = x * 1.5
    elif OP == "negative":
        z = -x
    else:
        z = tl.abs(x)
    tl.store(out_ptr + offs, z.to(out_ptr.dtype.element_ty), mask=offs < n)


TORCH = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "less": torch.lt,
    "equal": torch.eq,
    "maximum": torch.maximum,
    "negative": lambda x, y: -x,
    "abs": lambda x, y: x.abs(),
}


def binary(op, x, y):
    want = TORCH[op](x, y)
    out = torch.zeros(x.shape, dtype=want.dtype)
    binary_kernel[(1,)](x, y, out, op, len(x), BLOCK_SIZE=triton.next_power_of_2(len(x)))
    return out, want


def _add_arithmetic_checks():
    def of(op):
        def run():
            # Neighbours in a shuffled order meet values of every size, infinities and NaN included.
            x = patterns(torch.bfloat16)[torch.randperm(65536, generator=torch.Generator().manual_seed(1))]
            y = x.roll(1)
            x[:4], y[:4] = torch.tensor([float("nan"), 0.0, -0.0, 1.0]), torch.tensor([float("nan"), -0.0, 0.0, 1.0])
            if op == "negative" and not hasattr(InterpreterBuilder, "create_fneg"):
                # Before 3.9 Triton compiles -x to 0 - x, on a GPU as well, whose zero is positive.
                x, y = x[x != 0], y[x != 0]
            same(*binary(op, x, y))
            gen = torch.Generator().manual_seed(2)
            x, y = (torch.randn(8192, generator=gen).bfloat16() for _ in range(2))
            same(*binary(op, x, y))

        return run

    for op in TORCH:
        ALL[f"bf16_{op}"] = of(op)


_add_arithmetic_checks()


def _add_fp8_checks():
    def of(op):
        def run():
            for dtype in NARROW[1:]:
                x = patterns(dtype)
                x, y = x.repeat(256), x.repeat_interleave(256)
                want = TORCH[op](x.float(), y.float())
                want = want if want.dtype == torch.bool else want.to(dtype)
                out = torch.zeros_like(want)
                binary_kernel[(1,)](x, y, out, op, len(x), BLOCK_SIZE=len(x))
                same(out, want)

        return run

    for op in ("add", "sub", "mul", "div", "less", "equal", "maximum", "abs"):
        ALL[f"fp8_{op}"] = of(op)


_add_fp8_checks()


@check
def bf16_constants():
    @triton.jit
    def kernel(out_ptr):
        offs = tl.arange(0, 4)
        tl.store(out_ptr + offs, tl.full((4,), 1.00390625, tl.bfloat16) + offs.to(tl.bfloat16))

    out = torch.zeros(4, dtype=torch.bfloat16)
    kernel[(1,)](out)
    same(out, torch.arange(4).bfloat16() + torch.tensor(1.00390625).bfloat16())


@check
def bf16_fused_multiply_add_rounds_once():
    @triton.jit
    def kernel(x_ptr, y_ptr, z_ptr, out_ptr, n: tl.constexpr):
        offs = tl.arange(0, n)
        x, y, z = tl.load(x_ptr + offs), tl.load(y_ptr + offs), tl.load(z_ptr + offs)
        tl.store(out_ptr + offs, tl.fma(x, y, z))

    gen = torch.Generator().manual_seed(3)
    x, y, z = (torch.randn(4096, generator=gen).bfloat16() for _ in range(3))
    # 1.0625 × 1.0625 is one and a half steps above 1.125: a tie, which the tiny term breaks below float64's reach.
    x[:2], y[:2], z[0], z[1] = 1.0625, 1.0625, 2.0**-100, -(2.0**-100)
    out = torch.zeros_like(x)
    kernel[(1,)](x, y, z, out, len(x))
    from fractions import Fraction

    for i in range(len(x)):
        exact = Fraction(x[i].item()) * Fraction(y[i].item()) + Fraction(z[i].item())
        got = out[i].item()
        step = 2.0 ** (np.frexp(abs(got))[1] - 8) if got else 2.0**-133
        below, above = got - step, got + step
        assert abs(Fraction(got) - exact) <= min(abs(Fraction(below) - exact), abs(Fraction(above) - exact)), i
    assert out[0] > out[1], "the sign of the tiny term decides the tie"


@check
def functions_of_libdevice():
    @triton.jit
    def kernel(x_ptr, out_ptr, n: tl.constexpr):
        offs = tl.arange(0, n)
        x = tl.load(x_ptr + offs)
        tl.store(out_ptr + offs, libdevice.tanh(x))
        tl.store(out_ptr + n + offs, libdevice.erf(x))
        tl.store(out_ptr + 2 * n + offs, libdevice.pow(x, x))

    x, out = torch.linspace(0.01, 3, 64), torch.zeros(3, 64)
    kernel[(1,)](x, out, 64)
    wide = x.double()
    same(out, torch.stack([wide.tanh(), wide.erf(), wide.pow(wide)]).float())
