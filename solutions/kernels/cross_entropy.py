"""Cross-entropy of large vocabularies, its gradient written over the logits during the forward pass.

loss = mean over rows of log(sum(exp(x))) - x[target]; its gradient is (softmax(x) - onehot(target)) / n_rows_that_count.

A row of 128,256 logits does not fit into one program, so each is read twice and written once: the maximum and the sum
in the first pass, rescaled whenever a larger number comes (Maxim Milakov and Natalia Gimelshein, "Online normalizer
calculation for softmax", 2018), the gradient softmax - onehot in the second. No second tensor of the logits' size is
ever there. The second pass finds the row in the GPU's cache while few rows are under way.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from solutions.kernels.launch import n_processors


@dataclass(frozen=True)
class Plan:
    """How a program goes through its row: numbers in a block, warps that share them, blocks under way at once.

    It is no configuration of an autotuner: to time a kernel that writes over its input takes a copy of it.
    """

    block: int
    num_warps: int
    stages: int


PLAN = Plan(8192, 16, 3)
"""With 16 warps that fetch two blocks ahead, a processor has room for one row at a time: 132 rows of 256 KiB are 33 MiB,
which a cache of 50 MiB still has for the second pass."""
LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def cross_entropy_kernel(
    logits_ptr,
    target_ptr,
    loss_ptr,
    n_counted_ptr,
    n_cols,
    stride,
    IGNORED: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    row = tl.program_id(0)
    row_ptr = logits_ptr + row.to(tl.int64) * stride
    target = tl.load(target_ptr + row)
    cols = tl.arange(0, BLOCK)
    if target == IGNORED:
        tl.store(loss_ptr + row, 0.0)
        for start in range(0, n_cols, BLOCK):
            tl.store(
                row_ptr + start + cols,
                tl.zeros((BLOCK,), logits_ptr.dtype.element_ty),
                mask=start + cols < n_cols,
            )
    else:
        at_target = tl.load(row_ptr + target).to(tl.float32)
        # Sums stay in the lanes; only the maximum is the program's own, and taken once a block.
        top = -float("inf")
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
            # The second pass wants them again.
            x = tl.load(
                row_ptr + start + cols,
                mask=start + cols < n_cols,
                other=-float("inf"),
                eviction_policy="evict_last",
            ).to(tl.float32)
            above = tl.maximum(top, tl.max(x, axis=0))
            # Until a number that is not -inf has come there is nothing to rescale, and no maximum to subtract.
            base = tl.where(above == -float("inf"), 0.0, above)
            sums = sums * tl.exp2((top - base) * LOG2_E) + tl.exp2((x - base) * LOG2_E)
            top = above
        log_sum = top + tl.log2(tl.sum(sums, axis=0)) * LN_2
        scale = 1 / tl.load(n_counted_ptr).to(tl.float32)
        tl.store(loss_ptr + row, (log_sum - at_target) * scale)
        # No thread may write over a logit that another one has yet to read.
        tl.debug_barrier()
        for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
            inside = start + cols < n_cols
            x = tl.load(
                row_ptr + start + cols, mask=inside, other=0.0, eviction_policy="evict_first"
            ).to(tl.float32)
            grad = (
                tl.exp2((x - log_sum) * LOG2_E) - tl.where(start + cols == target, 1.0, 0.0)
            ) * scale
            tl.store(
                row_ptr + start + cols,
                grad.to(logits_ptr.dtype.element_ty),
                mask=inside,
                eviction_policy="evict_first",
            )


@triton.jit
def scale_in_place_kernel(x_ptr, factor_ptr, n, BLOCK: tl.constexpr):
    """Does nothing where the factor is 1, as it is for a loss that nothing follows: the host need not wait to see."""
    factor = tl.load(factor_ptr).to(tl.float32)
    if factor != 1.0:
        for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
            first = tl.cast(block, tl.int64) * BLOCK
            offs = tl.arange(0, BLOCK)
            mask = offs < n - first
            x = tl.load(x_ptr + first + offs, mask=mask).to(tl.float32)
            tl.store(x_ptr + first + offs, (x * factor).to(x_ptr.dtype.element_ty), mask=mask)


def launch_cross_entropy(logits: Tensor, target: Tensor, ignored: int, plan: Plan) -> Tensor:
    """logits: (n_rows, n_cols), contiguous; afterwards their gradient. The mean loss over the rows that count."""
    n_rows, n_cols = logits.shape
    losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    n_counted = (target != ignored).sum()
    block = min(plan.block, triton.next_power_of_2(n_cols))
    with torch.cuda.device_of(logits):
        cross_entropy_kernel[(n_rows,)](
            logits,
            target,
            losses,
            n_counted,
            n_cols,
            logits.stride(0),
            IGNORED=ignored,
            BLOCK=block,
            STAGES=plan.stages,
            num_warps=max(1, plan.num_warps * block // plan.block),
        )
    # Where no row counts, torch divides 0 by 0, and so the loss is NaN here as well.
    return torch.where(n_counted > 0, losses.sum(), torch.nan)


def launch_scale_in_place(x: Tensor, factor: Tensor) -> Tensor:
    """x, contiguous, times a factor that stays on the GPU."""
    block, n = 4096, x.numel()
    with torch.cuda.device_of(x):
        programs = min(triton.cdiv(n, block), 8 * n_processors(x))
        scale_in_place_kernel[(programs,)](x, factor, n, BLOCK=block, num_warps=8)
    return x


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, target: Tensor, ignored: int, plan: Plan) -> Tensor:
        loss = launch_cross_entropy(logits, target, ignored, plan)
        ctx.grad = logits.detach()
        return loss

    @staticmethod
    def backward(ctx, dloss: Tensor) -> tuple[Tensor, None, None, None]:
        if ctx.grad is None:
            raise RuntimeError(
                "cross_entropy keeps its gradient in place of the logits: call backward once"
            )
        grad, ctx.grad = ctx.grad, None
        return launch_scale_in_place(grad, dloss), None, None, None


def cross_entropy(logits: Tensor, target: Tensor, ignored: int = -100, plan: Plan = PLAN) -> Tensor:
    """The mean cross-entropy in float32, over the rows whose target is not `ignored`.

    logits: (n_rows, n_cols), contiguous, OVERWRITTEN: use them for nothing else afterwards. target: (n_rows,), int64,
    each below n_cols. Raises ValueError for other shapes, RuntimeError for a second backward pass.
    """
    if logits.ndim != 2 or target.shape != logits.shape[:1] or not logits.numel():
        raise ValueError(
            f"cross_entropy takes logits (rows, columns) and a target for each row, not {tuple(logits.shape)} and "
            f"{tuple(target.shape)}"
        )
    if not logits.is_contiguous():
        raise ValueError(
            "cross_entropy writes over its logits, so they must be contiguous: call .contiguous() before"
        )
    return CrossEntropy.apply(logits, target, ignored, plan)
