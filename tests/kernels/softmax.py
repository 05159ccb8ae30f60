"""Softmax over the rows of a matrix: a row at once, and in three passes over it."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out_ptr, x_ptr, stride_out, stride_x, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride_out + cols, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def three_pass_softmax_kernel(out_ptr, x_ptr, stride_out, stride_x, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    maximum = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        maximum = tl.maximum(maximum, x)
    top = tl.max(maximum, axis=0)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - top)
    scale = 1 / tl.sum(total, axis=0)
    for start in range(0, n_cols, BLOCK_SIZE):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * stride_out + start + cols, tl.exp(x - top) * scale, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block_size = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](out, x, out.stride(0), x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out


def three_pass_softmax(x: torch.Tensor, block_size: int = 256) -> torch.Tensor:
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    three_pass_softmax_kernel[(n_rows,)](out, x, out.stride(0), x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out
