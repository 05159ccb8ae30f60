"""Answers to lab 97, as the text of cells."""

IMPORTS = """
import torch
import triton
import triton.language as tl
"""
ADD_KERNEL = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)
"""
ADD = f"""{ADD_KERNEL}

def add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK_SIZE=128)
    return out
"""
SOFTMAX = """
@triton.jit
def softmax_kernel(out_ptr, x_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + tl.program_id(0) * stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + tl.program_id(0) * stride + cols, e / tl.sum(e, axis=0), mask=mask)


def softmax(x):
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], BLOCK_SIZE=block, num_warps=1)
    return out
"""
TOTAL = """
BLOCK = 128


@triton.jit
def partial_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0)))


def total(x):
    n = triton.cdiv(x.numel(), BLOCK)
    partial, out = x.new_empty(n), x.new_empty(())
    partial_kernel[(n,)](x, partial, x.numel(), BLOCK_SIZE=BLOCK)
    partial_kernel[(1,)](partial, out, n, BLOCK_SIZE=triton.next_power_of_2(n))
    return out
"""
TOTAL_WITH_SUM = TOTAL.split("    partial_kernel[(1,)]")[0] + "    return partial.sum()\n"
SILU = """
@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.autotune(configs=[triton.Config({"BLOCK_SIZE": 64}), triton.Config({"BLOCK_SIZE": 128})], key=["n"])
@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * sigmoid(x), mask=offs < n)


@triton.jit
def silu_backward_kernel(x_ptr, dy_ptr, dx_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    s = sigmoid(x)
    tl.store(dx_ptr + offs, tl.load(dy_ptr + offs, mask=mask) * s * (1 + x * (1 - s)), mask=mask)


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        silu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)](x, out, x.numel())
        return out

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        silu_backward_kernel[(triton.cdiv(x.numel(), 64),)](x, dy, dx, x.numel(), BLOCK_SIZE=64)
        return dx


silu = Silu.apply
"""
PRODUCT = """
@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    here = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + here), tl.load(b_ptr + here)
    tl.store(out_ptr + here, tl.dot(a, b))


def product(a, b):
    out = torch.empty(a.shape)
    product_kernel[(1,)](a, b, out, N=len(a))
    return out
"""
