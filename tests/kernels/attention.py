"""Causal attention, forward, without the matrix of scores: one block of queries per program and head."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    seq,
    scale,
    D_HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    block, head = tl.program_id(0), tl.program_id(1)
    base = head * seq * D_HEAD
    offs_m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D_HEAD)
    rows = base + offs_m[:, None] * D_HEAD + offs_d[None, :]
    q = tl.load(q_ptr + rows, mask=offs_m[:, None] < seq, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    out = tl.zeros((BLOCK_M, D_HEAD), tl.float32)
    for start in range(0, tl.minimum((block + 1) * BLOCK_M, seq), BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        inside = offs_n[:, None] < seq
        k = tl.load(k_ptr + base + offs_n[:, None] * D_HEAD + offs_d[None, :], mask=inside, other=0.0)
        v = tl.load(v_ptr + base + offs_n[:, None] * D_HEAD + offs_d[None, :], mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (offs_m[:, None] >= offs_n[None, :]) & (offs_n[None, :] < seq)
        scores = tl.where(visible, scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        out = out * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        top = new_top
    out = out / total[:, None]
    tl.store(out_ptr + rows, out.to(out_ptr.dtype.element_ty), mask=offs_m[:, None] < seq)
    tl.store(lse_ptr + head * seq + offs_m, top + tl.log(total), mask=offs_m < seq)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, blocks: tuple[int, int] = (32, 32)
) -> tuple[torch.Tensor, torch.Tensor]:
    """q, k, v: (heads, seq, d_head). The result, and the logarithm of each row's sum of exponentials, in float32."""
    heads, seq, d_head = q.shape
    out = torch.empty_like(q)
    lse = torch.empty(heads, seq, dtype=torch.float32)
    block_m, block_n = blocks
    attention_kernel[(triton.cdiv(seq, block_m), heads)](
        q, k, v, out, lse, seq, d_head**-0.5, D_HEAD=d_head, BLOCK_M=block_m, BLOCK_N=block_n
    )
    return out, lse
