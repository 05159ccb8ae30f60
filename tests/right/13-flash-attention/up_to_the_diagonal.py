# walks over the keys up to the last row of its own block
@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, seq, scale, D_HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    block, head = tl.program_id(0), tl.program_id(1)
    base = head * seq * D_HEAD
    dims = tl.arange(0, D_HEAD)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    at = base + rows[:, None] * D_HEAD + dims[None, :]
    q = tl.load(q_ptr + at, mask=rows[:, None] < seq, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    out = tl.zeros((BLOCK_M, D_HEAD), tl.float32)
    for start in range(0, tl.minimum((block + 1) * BLOCK_M, seq), BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        kv = base + cols[:, None] * D_HEAD + dims[None, :]
        k = tl.load(k_ptr + kv, mask=cols[:, None] < seq, other=0.0)
        v = tl.load(v_ptr + kv, mask=cols[:, None] < seq, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(rows[:, None] >= cols[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = out * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        top = new_top
    tl.store(out_ptr + at, (out / total[:, None]).to(out_ptr.dtype.element_ty), mask=rows[:, None] < seq)
def attention(q, k, v, block_m=32, block_n=32):
    n_heads, seq, d_head = q.shape
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(seq, block_m), n_heads)](q, k, v, out, seq, d_head**-0.5, D_HEAD=d_head, BLOCK_M=block_m, BLOCK_N=block_n)
    return out
