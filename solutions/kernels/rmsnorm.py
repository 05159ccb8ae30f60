"""RMSNorm, x / sqrt(mean(x²) + eps) * weight, forward and backward.

Forward, a program holds whole rows. Backward, each program goes through many rows and sums its part of the weight's
gradient on the way, so that this gradient costs one row of memory a program instead of a second pass.
Biao Zhang and Rico Sennrich, "Root Mean Square Layer Normalization" (2019).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from solutions.kernels.launch import (
    ROW_BLOCKS,
    ROW_LOOPS,
    as_rows,
    fitting_loops,
    fitting_rows,
    n_processors,
)
from solutions.kernels.partials import sum_partials


@triton.autotune(ROW_BLOCKS, key=["BLOCK_N"], prune_configs_by={"early_config_prune": fitting_rows})
@triton.jit
def rmsnorm_kernel(
    x_ptr,
    weight_ptr,
    out_ptr,
    rstd_ptr,
    n_rows,
    n_cols,
    eps,
    BLOCK_N: tl.constexpr,
    ROWS: tl.constexpr,
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    row, cols = tl.arange(0, ROWS), tl.arange(0, BLOCK_N)[None, :]
    mask = (row[:, None] < n_rows - first) & (cols < n_cols)
    offs = row[:, None] * n_cols + cols
    x = tl.load(
        x_ptr + first * n_cols + offs, mask=mask, other=0.0, eviction_policy="evict_first"
    ).to(tl.float32)
    weight = tl.load(
        weight_ptr + cols, mask=cols < n_cols, other=0.0, eviction_policy="evict_last"
    ).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=1) / n_cols + eps)
    out = x * rstd[:, None] * weight
    tl.store(out_ptr + first * n_cols + offs, out.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(rstd_ptr + first + row, rstd, mask=row < n_rows - first)


@triton.autotune(ROW_LOOPS, key=["BLOCK_N"], prune_configs_by={"early_config_prune": fitting_loops})
@triton.jit
def rmsnorm_backward_kernel(
    dout_ptr,
    x_ptr,
    weight_ptr,
    rstd_ptr,
    dx_ptr,
    part_ptr,
    n_rows,
    n_cols,
    BLOCK_N: tl.constexpr,
    ROWS: tl.constexpr,
    PER_PROCESSOR: tl.constexpr,
    STAGES: tl.constexpr,
):
    program = tl.program_id(0)
    row, cols = tl.arange(0, ROWS), tl.arange(0, BLOCK_N)
    weight = tl.load(weight_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)[None, :]
    dweight = tl.zeros((BLOCK_N,), tl.float32)
    for block in tl.range(program, tl.cdiv(n_rows, ROWS), tl.num_programs(0), num_stages=STAGES):
        first = tl.cast(block, tl.int64) * ROWS
        mask = (row[:, None] < n_rows - first) & (cols[None, :] < n_cols)
        offs = row[:, None] * n_cols + cols[None, :]
        x = tl.load(x_ptr + first * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + first * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + first + row, mask=row < n_rows - first, other=0.0)[:, None]
        normed = x * rstd
        dnormed = dout * weight
        along = tl.sum(normed * dnormed, axis=1)[:, None] / n_cols
        dx = (dnormed - normed * along) * rstd
        tl.store(dx_ptr + first * n_cols + offs, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dweight += tl.sum(dout * normed, axis=0)
    tl.store(part_ptr + program * n_cols + cols, dweight, mask=cols < n_cols)


def launch_rmsnorm(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x: (n_rows, n_cols), contiguous. The result, and 1 / sqrt(mean(x²) + eps) of each row in float32."""
    n_rows, n_cols = x.shape
    out, rstd = torch.empty_like(x), torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if x.numel():
        with torch.cuda.device_of(x):
            rmsnorm_kernel[lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)](
                x, weight, out, rstd, n_rows, n_cols, eps, BLOCK_N=triton.next_power_of_2(n_cols)
            )
    return out, rstd


def launch_rmsnorm_backward(
    dout: Tensor, x: Tensor, weight: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """dout, x: (n_rows, n_cols), contiguous. The gradients of x and of weight."""
    n_rows, n_cols = x.shape
    dx = torch.empty_like(x)
    if not x.numel():
        return dx, torch.zeros_like(weight)
    n = n_processors(x)
    most = n * max(config.kwargs["PER_PROCESSOR"] for config in ROW_LOOPS)
    partials = torch.empty(most, n_cols, dtype=torch.float32, device=x.device)
    with torch.cuda.device_of(x):
        rmsnorm_backward_kernel[lambda meta: (n * meta["PER_PROCESSOR"],)](
            dout,
            x,
            weight,
            rstd,
            dx,
            partials,
            n_rows,
            n_cols,
            BLOCK_N=triton.next_power_of_2(n_cols),
        )
        n_programs = n * rmsnorm_backward_kernel.best_config.kwargs["PER_PROCESSOR"]
        return dx, sum_partials(partials[:n_programs], weight)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        rows, weight = as_rows(x), weight.contiguous()
        out, rstd = launch_rmsnorm(rows, weight, eps)
        ctx.save_for_backward(rows, weight, rstd)
        return out.view(x.shape)

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple[Tensor, Tensor, None]:
        dx, dweight = launch_rmsnorm_backward(as_rows(dout), *ctx.saved_tensors)
        return dx.view(dout.shape), dweight, None


def rmsnorm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """RMSNorm over the last dimension, in float32 inside. weight: (n_cols,). Raises ValueError where it does not fit."""
    if weight.shape != x.shape[-1:]:
        raise ValueError(
            f"rmsnorm over rows of {x.shape[-1]} numbers needs as many weights, not {tuple(weight.shape)}"
        )
    return RMSNorm.apply(x, weight, eps)
