"""Kernels for the compiler alone: helpers of every kind, configurations, and ones that do not compile."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def half(x):
    return x * 0.5


@triton.jit
def gelu(x):
    return half(x) * (1 + libdevice.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@triton.jit
def helpers_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = gelu(tl.load(x_ptr + offs, mask=offs < n))
    tl.store(out_ptr + offs, x / x.sum(axis=0), mask=offs < n)


@triton.autotune([triton.Config({"BLOCK_SIZE": 512}, num_warps=2), triton.Config({"BLOCK_SIZE": 1024})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK_SIZE"] == 0})
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    if EVEN:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs))
    else:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@triton.jit
def wrong_shape(x):
    return x + tl.arange(0, 3)


@triton.jit
def broken_kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK_SIZE))
    tl.store(x_ptr, wrong_shape(x))


def closure_kernel(helper):
    @triton.jit
    def kernel(x_ptr, BLOCK_SIZE: tl.constexpr):
        offs = tl.arange(0, BLOCK_SIZE)
        tl.store(x_ptr + offs, helper(tl.load(x_ptr + offs)))

    return kernel
