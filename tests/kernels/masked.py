"""Kernels that load without `other=` and use the masked lanes, or do not."""

import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n).to(tl.float32), axis=0))


@triton.jit
def sum_after_where_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
    tl.store(out_ptr, tl.sum(tl.where(offs < n, x, 0.0), axis=0))


@triton.jit
def dot_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    rows = tl.arange(0, BLOCK_SIZE)
    here = rows[:, None] * BLOCK_SIZE + rows[None, :]
    x = tl.load(x_ptr + here, mask=rows[:, None] < n)
    tl.store(out_ptr + here, tl.dot(x, x).to(out_ptr.dtype.element_ty))
