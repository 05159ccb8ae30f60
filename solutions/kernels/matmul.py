"""Matrix product in tiles, forward and backward: out = a b, 2 * m * n * k FLOPs; da = dout bᵀ, db = aᵀ dout.

Programs go through the result in groups of rows of tiles, so that neighbours in time share what they read, and find it
in the cache. Compute-bound from about 1024 on.

Ragged edges read the first rows or columns again instead of masking them, which keeps loads wide.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

TILES = [
    triton.Config(
        {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}, num_warps=warps, num_stages=stages
    )
    for m, n, k, warps, stages in (
        (128, 256, 64, 8, 3),
        (128, 256, 64, 8, 4),
        (256, 128, 64, 8, 3),
        (256, 128, 64, 8, 4),
        (128, 128, 64, 8, 4),
        (128, 128, 64, 4, 4),
        (128, 128, 32, 4, 4),
        (128, 64, 64, 4, 4),
        (64, 64, 64, 4, 4),
        (64, 64, 32, 4, 3),
    )
]
SMALL_TILES = TILES[-4:]
"""What float32 has the shared memory for."""


def fitting_tiles(
    configs: list[triton.Config], arguments: dict, **meta: object
) -> list[triton.Config]:
    """Tiles no larger than the result asks for, and than shared memory holds."""
    m, n, factor = arguments["m"], arguments["n"], arguments["a_ptr"]
    some = SMALL_TILES if factor.element_size() > 2 else configs
    return [c for c in some if c.kwargs["BLOCK_M"] <= m and c.kwargs["BLOCK_N"] <= n] or [
        configs[-1]
    ]


@triton.autotune(
    TILES,
    key=["m_class", "n_class", "k_class"],
    prune_configs_by={"early_config_prune": fitting_tiles},
)
@triton.heuristics({"EVEN_K": lambda arguments: arguments["k"] % arguments["BLOCK_K"] == 0})
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    m_class,
    n_class,
    k_class,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    in_group = GROUP * tiles_n
    first_m = program // in_group * GROUP
    group = tl.minimum(tiles_m - first_m, GROUP)
    tile_m = first_m + program % in_group % group
    tile_n = program % in_group // group

    offs_m, offs_n = (
        tile_m * BLOCK_M + tl.arange(0, BLOCK_M),
        tile_n * BLOCK_N + tl.arange(0, BLOCK_N),
    )
    offs_k = tl.arange(0, BLOCK_K)
    # The remainder hides that the lanes are neighbours and aligned; this says so again.
    rows = tl.max_contiguous(tl.multiple_of(offs_m % m, BLOCK_M), BLOCK_M)
    cols = tl.max_contiguous(tl.multiple_of(offs_n % n, BLOCK_N), BLOCK_N)
    a_ptrs = a_ptr + rows.to(tl.int64)[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + cols.to(tl.int64)[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        if EVEN_K:
            a, b = tl.load(a_ptrs), tl.load(b_ptrs)
        else:
            inside = offs_k < k - start
            a = tl.load(a_ptrs, mask=inside[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=inside[:, None], other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    mask = (offs_m[:, None] < m) & (offs_n[None, :] < n)
    c_ptrs = c_ptr + offs_m.to(tl.int64)[:, None] * stride_cm + offs_n[None, :]
    tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty), mask=mask)


def launch_matmul(a: Tensor, b: Tensor) -> Tensor:
    """a: (m, k), b: (k, n), of any strides. Their product, contiguous."""
    (m, k), n = a.shape, b.shape[1]
    c = a.new_zeros(m, n) if not k else a.new_empty(m, n)
    if m and n and k:
        grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)
        sizes = {
            f"{name}_class": triton.next_power_of_2(size)
            for name, size in (("m", m), ("n", n), ("k", k))
        }
        precision = "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
        with torch.cuda.device_of(a):
            matmul_kernel[grid](
                a,
                b,
                c,
                m,
                n,
                k,
                *a.stride(),
                *b.stride(),
                c.stride(0),
                **sizes,
                PRECISION=precision,
            )
    return c


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return launch_matmul(a, b)

    @staticmethod
    def backward(ctx, dc: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        wants_a, wants_b = ctx.needs_input_grad
        return launch_matmul(dc, b.T) if wants_a else None, launch_matmul(
            a.T, dc
        ) if wants_b else None


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a @ b for two matrices of one type, summed in float32; for float32, by torch's `float32_matmul_precision`.

    Raises ValueError where they do not fit.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        raise ValueError(
            f"matmul takes matrices (m, k) and (k, n) of one type, not {tuple(a.shape)} {a.dtype} and "
            f"{tuple(b.shape)} {b.dtype}"
        )
    return MatMul.apply(a, b)
