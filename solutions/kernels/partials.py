"""Add up what the programs of a norm's backward pass have each summed over their own rows: out[c] = sum_p part[p, c].

The order of the additions is fixed by the number of programs, so the gradient of a weight is the same at every run,
as it would not be with atomic additions.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_P, BLOCK_C = 128, 32


@triton.jit
def sum_partials_kernel(
    part_ptr, out_ptr, n_parts, n_cols, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr
):
    cols = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    total = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    for start in tl.range(0, n_parts, BLOCK_P, num_stages=3):
        parts = start + tl.arange(0, BLOCK_P)
        mask = (parts[:, None] < n_parts) & (cols[None, :] < n_cols)
        total += tl.load(part_ptr + parts[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + cols, tl.sum(total, axis=0).to(out_ptr.dtype.element_ty), mask=cols < n_cols)


def sum_partials(partials: Tensor, like: Tensor) -> Tensor:
    """partials: (n_parts, n_cols) in float32, contiguous. Their sum over the first dimension, in the type of `like`."""
    n_parts, n_cols = partials.shape
    out = torch.empty_like(like)
    sum_partials_kernel[(triton.cdiv(n_cols, BLOCK_C),)](
        partials, out, n_parts, n_cols, BLOCK_P=BLOCK_P, BLOCK_C=BLOCK_C, num_warps=8
    )
    return out
