"""Matrix product, one tile of the result per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    n_rows,
    n_cols,
    n_inner,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, n_inner, BLOCK_K):
        k = start + offs_k
        a_mask = (offs_m[:, None] < n_rows) & (k[None, :] < n_inner)
        b_mask = (k[:, None] < n_inner) & (offs_n[None, :] < n_cols)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + k[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
    mask = (offs_m[:, None] < n_rows) & (offs_n[None, :] < n_cols)
    c = total.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn, c, mask=mask)


def matmul(
    a: torch.Tensor, b: torch.Tensor, blocks: tuple[int, int, int] = (64, 64, 32), precision: str = "ieee"
) -> torch.Tensor:
    n_rows, n_inner = a.shape
    n_cols = b.shape[1]
    c = a.new_empty(n_rows, n_cols)
    block_m, block_n, block_k = blocks
    grid = (triton.cdiv(n_rows, block_m), triton.cdiv(n_cols, block_n))
    matmul_kernel[grid](
        a,
        b,
        c,
        n_rows,
        n_cols,
        n_inner,
        *a.stride(),
        *b.stride(),
        *c.stride(),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        PRECISION=precision,
    )
    return c
