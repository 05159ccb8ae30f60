"""LayerNorm, (x - mean) / sqrt(variance + eps) * weight + bias, forward and backward; see rmsnorm for the plan.

Jimmy Lei Ba, Jamie Ryan Kiros and Geoffrey Hinton, "Layer Normalization" (2016).
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
    same_shape,
)
from solutions.kernels.partials import sum_partials


@triton.autotune(ROW_BLOCKS, key=["BLOCK_N"], prune_configs_by={"early_config_prune": fitting_rows})
@triton.jit
def layernorm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    mean_ptr,
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
    bias = tl.load(bias_ptr + cols, mask=cols < n_cols, other=0.0, eviction_policy="evict_last").to(
        tl.float32
    )
    mean = tl.sum(x, axis=1) / n_cols
    # The lanes beside the row are 0, and would be -mean; the variance of the differences does not cancel.
    centred = tl.where(mask, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=1) / n_cols + eps)
    out = centred * rstd[:, None] * weight + bias
    tl.store(out_ptr + first * n_cols + offs, out.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + first + row, mean, mask=row < n_rows - first)
    tl.store(rstd_ptr + first + row, rstd, mask=row < n_rows - first)


@triton.autotune(ROW_LOOPS, key=["BLOCK_N"], prune_configs_by={"early_config_prune": fitting_loops})
@triton.jit
def layernorm_backward_kernel(
    dout_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dweight_part_ptr,
    dbias_part_ptr,
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
    dweight, dbias = tl.zeros((BLOCK_N,), tl.float32), tl.zeros((BLOCK_N,), tl.float32)
    for block in tl.range(program, tl.cdiv(n_rows, ROWS), tl.num_programs(0), num_stages=STAGES):
        first = tl.cast(block, tl.int64) * ROWS
        mask = (row[:, None] < n_rows - first) & (cols[None, :] < n_cols)
        offs = row[:, None] * n_cols + cols[None, :]
        x = tl.load(x_ptr + first * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + first * n_cols + offs, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + first + row, mask=row < n_rows - first, other=0.0)[:, None]
        rstd = tl.load(rstd_ptr + first + row, mask=row < n_rows - first, other=0.0)[:, None]
        # Beside the row dout is 0, so whatever stands in `normed` there adds nothing to any sum.
        normed = (x - mean) * rstd
        dnormed = dout * weight
        along = tl.sum(normed * dnormed, axis=1)[:, None] / n_cols
        level = tl.sum(dnormed, axis=1)[:, None] / n_cols
        dx = (dnormed - normed * along - level) * rstd
        tl.store(dx_ptr + first * n_cols + offs, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dweight += tl.sum(dout * normed, axis=0)
        dbias += tl.sum(dout, axis=0)
    tl.store(dweight_part_ptr + program * n_cols + cols, dweight, mask=cols < n_cols)
    tl.store(dbias_part_ptr + program * n_cols + cols, dbias, mask=cols < n_cols)


def launch_layernorm(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """x: (n_rows, n_cols), contiguous. The result, and each row's mean and 1 / sqrt(variance + eps) in float32."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    mean, rstd = (torch.empty(n_rows, dtype=torch.float32, device=x.device) for _ in range(2))
    if x.numel():
        with torch.cuda.device_of(x):
            layernorm_kernel[lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)](
                x,
                weight,
                bias,
                out,
                mean,
                rstd,
                n_rows,
                n_cols,
                eps,
                BLOCK_N=triton.next_power_of_2(n_cols),
            )
    return out, mean, rstd


def launch_layernorm_backward(
    dout: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """dout, x: (n_rows, n_cols), contiguous. The gradients of x, weight and bias, the last in the weight's type."""
    n_rows, n_cols = x.shape
    dx = torch.empty_like(x)
    if not x.numel():
        return dx, torch.zeros_like(weight), torch.zeros_like(weight)
    n = n_processors(x)
    most = n * max(config.kwargs["PER_PROCESSOR"] for config in ROW_LOOPS)
    partials = torch.empty(2, most, n_cols, dtype=torch.float32, device=x.device)
    with torch.cuda.device_of(x):
        layernorm_backward_kernel[lambda meta: (n * meta["PER_PROCESSOR"],)](
            dout,
            x,
            weight,
            mean,
            rstd,
            dx,
            *partials,
            n_rows,
            n_cols,
            BLOCK_N=triton.next_power_of_2(n_cols),
        )
        n_programs = n * layernorm_backward_kernel.best_config.kwargs["PER_PROCESSOR"]
        dweight, dbias = (sum_partials(one[:n_programs], weight) for one in partials)
    return dx, dweight, dbias


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        rows, weight = as_rows(x), weight.contiguous()
        out, mean, rstd = launch_layernorm(rows, weight, bias.contiguous(), eps)
        ctx.save_for_backward(rows, weight, mean, rstd)
        return out.view(x.shape)

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        dx, dweight, dbias = launch_layernorm_backward(as_rows(dout), *ctx.saved_tensors)
        return dx.view(dout.shape), dweight, dbias, None


def layernorm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """LayerNorm over the last dimension, in float32 inside. weight, bias: (n_cols,), of one type. Raises ValueError."""
    if weight.shape != x.shape[-1:]:
        raise ValueError(
            f"layernorm over rows of {x.shape[-1]} numbers needs as many weights, not {tuple(weight.shape)}"
        )
    same_shape("layernorm", weight=weight, bias=bias)
    return LayerNorm.apply(x, weight, bias, eps)
