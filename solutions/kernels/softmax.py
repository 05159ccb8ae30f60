"""Softmax over the last dimension in one pass: a program holds whole rows in its registers. Forward and backward.

y = exp(x - max(x)) / sum(exp(x - max(x))), and dx = y * (dy - sum(dy * y)), each over a row: the chain rule with
dy_i/dx_j = y_i * ([i = j] - y_j). A row is read once and written once; backward, two are read and one is written.

Rows of more than 65,536 numbers are refused; a loop over parts of a row is what cross_entropy shows.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from solutions.kernels.launch import ROW_BLOCKS, as_rows, fitting_rows

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.autotune(ROW_BLOCKS, key=["BLOCK_N"], prune_configs_by={"early_config_prune": fitting_rows})
@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK_N: tl.constexpr, ROWS: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows, cols = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows - first) & (cols < n_cols)
    offs = rows * n_cols + cols
    x = tl.load(x_ptr + first * n_cols + offs, mask=mask, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=1)[:, None]
    # The hardware has powers of two alone. The factor comes after the difference, which is exact where it matters.
    e = tl.exp2((x - tl.where(rows < n_rows - first, top, 0.0)) * LOG2_E)
    out = e * (1 / tl.sum(e, axis=1))[:, None]
    tl.store(out_ptr + first * n_cols + offs, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.autotune(ROW_BLOCKS, key=["BLOCK_N"], prune_configs_by={"early_config_prune": fitting_rows})
@triton.jit
def softmax_backward_kernel(
    dout_ptr, out_ptr, dx_ptr, n_rows, n_cols, BLOCK_N: tl.constexpr, ROWS: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows, cols = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows - first) & (cols < n_cols)
    offs = rows * n_cols + cols
    dout = tl.load(dout_ptr + first * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
    out = tl.load(out_ptr + first * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
    dx = out * (dout - tl.sum(dout * out, axis=1)[:, None])
    tl.store(dx_ptr + first * n_cols + offs, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def launch_softmax(x: Tensor) -> Tensor:
    """x: (n_rows, n_cols), contiguous."""
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    if x.numel():
        with torch.cuda.device_of(x):
            softmax_kernel[lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)](
                x, out, n_rows, n_cols, BLOCK_N=triton.next_power_of_2(n_cols)
            )
    return out


def launch_softmax_backward(dout: Tensor, out: Tensor) -> Tensor:
    """dout, out: (n_rows, n_cols), contiguous."""
    dx = torch.empty_like(out)
    n_rows, n_cols = out.shape
    if out.numel():
        with torch.cuda.device_of(out):
            softmax_backward_kernel[lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)](
                dout, out, dx, n_rows, n_cols, BLOCK_N=triton.next_power_of_2(n_cols)
            )
    return dx


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        out = launch_softmax(as_rows(x))
        ctx.save_for_backward(out)
        return out.view(x.shape)

    @staticmethod
    def backward(ctx, dout: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors
        return launch_softmax_backward(as_rows(dout), out).view(dout.shape)


def softmax(x: Tensor) -> Tensor:
    """Softmax over the last dimension, in float32 inside. Raises ValueError for rows too long."""
    return Softmax.apply(x)
