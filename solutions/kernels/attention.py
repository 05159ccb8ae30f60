"""Causal attention, forward, without the matrix of scores: a program has a block of queries and walks over the keys.

out = softmax(scale * q kᵀ + mask) v, where the mask is -inf for every key after the query. FLOPs of its products:
2 * seq² * d_head a head, half of what both products would take without the mask.

Keys before the block are visible to all of its queries and need no mask; only the blocks on the diagonal do, so the
loop is cut in two. Tri Dao, "FlashAttention-2" (2023), algorithm 1, in powers of two. There is no backward pass here.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from solutions.kernels.launch import same_shape

LOG2_E = 1.4426950408889634
BLOCKS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps, num_stages=stages)
    for m, n, warps, stages in (
        (128, 64, 8, 3),
        (128, 128, 8, 2),
        (128, 128, 8, 3),
        (128, 64, 8, 4),
        (128, 64, 4, 3),
        (128, 32, 4, 3),
        (64, 64, 4, 3),
        (64, 32, 4, 3),
    )
]
"""Each BLOCK_N divides each BLOCK_M, so a block of queries begins where a block of keys does."""


def fitting_blocks(
    configs: list[triton.Config], arguments: dict, **meta: object
) -> list[triton.Config]:
    """Blocks no longer than the sequence, that registers hold, and for float32 shared memory as well."""
    longest = min(128 if arguments["q_ptr"].element_size() == 2 else 64, max(64, arguments["seq"]))

    def fits(config: triton.Config) -> bool:
        m, n = config.kwargs["BLOCK_M"], config.kwargs["BLOCK_N"]
        per_thread = m * (n + meta["D_HEAD"]) / (32 * config.num_warps)
        return max(m, n) <= longest and per_thread < 192

    return list(filter(fits, configs)) or [configs[-1]]


@triton.jit
def _walk(
    out, total, top, q, k_ptr, v_ptr, first, end, offs_m, seq, scale,
    D_HEAD: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Take in the keys from `first` to `end`. scale: with log2(e), so that exp2 does the rest."""
    offs_n, offs_d = tl.arange(0, BLOCK_N), tl.arange(0, D_HEAD)
    for start in range(first, end, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        places = (start + offs_n)[:, None] * D_HEAD + offs_d[None, :]
        if MASKED:
            inside = (start + offs_n)[:, None] < seq
            k = tl.load(k_ptr + places, mask=inside, other=0.0)
            v = tl.load(v_ptr + places, mask=inside, other=0.0)
        else:
            k, v = tl.load(k_ptr + places), tl.load(v_ptr + places)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        if MASKED:
            scores = tl.where(offs_m[:, None] >= (start + offs_n)[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1) * scale)
        p = tl.exp2(scores * scale - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None], input_precision=PRECISION)
        top = new_top
    return out, total, top


@triton.autotune(
    BLOCKS, key=["seq_class", "D_HEAD"], prune_configs_by={"early_config_prune": fitting_blocks}
)
@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    seq,
    scale,
    seq_class,
    PRECISION: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # The last block of queries has the most keys: with it first, no long program is left over at the end.
    block, head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    base = head.to(tl.int64) * seq * D_HEAD
    offs_m, offs_d = block * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D_HEAD)
    rows = offs_m[:, None] * D_HEAD + offs_d[None, :]
    q = tl.load(q_ptr + base + rows, mask=offs_m[:, None] < seq, other=0.0)
    out = tl.zeros((BLOCK_M, D_HEAD), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    out, total, top = _walk(
        out, total, top, q, k_ptr + base, v_ptr + base, 0, block * BLOCK_M, offs_m, seq, scale,
        D_HEAD, BLOCK_N, False, PRECISION,
    )  # fmt: skip
    out, total, top = _walk(
        out, total, top, q, k_ptr + base, v_ptr + base, block * BLOCK_M, tl.minimum((block + 1) * BLOCK_M, seq),
        offs_m, seq, scale, D_HEAD, BLOCK_N, True, PRECISION,
    )  # fmt: skip
    out = out * (1 / total)[:, None]
    tl.store(out_ptr + base + rows, out.to(out_ptr.dtype.element_ty), mask=offs_m[:, None] < seq)
    tl.store(lse_ptr + head.to(tl.int64) * seq + offs_m, top + tl.log2(total), mask=offs_m < seq)


def launch_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """q, k, v: (heads, seq, d_head), contiguous. The result, and log2 of each row's sum of exponentials."""
    heads, seq, d_head = q.shape
    out, lse = torch.empty_like(q), torch.empty(heads, seq, dtype=torch.float32, device=q.device)
    precision = "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
    if q.numel():
        with torch.cuda.device_of(q):
            attention_kernel[lambda meta: (triton.cdiv(seq, meta["BLOCK_M"]), heads)](
                q, k, v, out, lse, seq, scale * LOG2_E,
                seq_class=triton.next_power_of_2(seq), PRECISION=precision, D_HEAD=d_head,
            )  # fmt: skip
    return out, lse


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    """Causal attention. q, k, v: (..., heads, seq, d_head), of one shape; scale: 1 / sqrt(d_head) unless given.

    Raises ValueError for shapes that differ, a d_head that is no power of two from 16 to 256, a scale that is not
    positive, and for tensors that want a gradient, since there is no backward pass.
    """
    same_shape("attention", q=q, k=k, v=v)
    d_head = q.shape[-1]
    if q.ndim < 3 or d_head not in (16, 32, 64, 128, 256):
        raise ValueError(
            f"attention takes (..., heads, seq, d_head) with d_head 16, 32, 64, 128 or 256, not {tuple(q.shape)}"
        )
    scale = d_head**-0.5 if scale is None else scale
    if not scale > 0:
        # The maximum is taken before the scale is applied.
        raise ValueError(f"attention's scale must be above 0, not {scale}")
    if torch.is_grad_enabled() and any(one.requires_grad for one in (q, k, v)):
        raise ValueError("this attention has no backward pass: call it under torch.no_grad()")
    out, _ = launch_attention(*(one.flatten(0, -3).contiguous() for one in (q, k, v)), scale)
    return out.view(q.shape)
