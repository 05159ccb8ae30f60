# hint: p and ds must not leave the registers
@triton.jit
def pairs_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, dout_ptr, p_ptr, ds_ptr, seq, scale, CAUSAL: tl.constexpr,
    D_HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    head, dims = tl.program_id(2), tl.arange(0, D_HEAD)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    queries, keys = (head * seq + rows)[:, None] * D_HEAD + dims[None, :], (head * seq + cols)[:, None] * D_HEAD + dims[None, :]
    q = tl.load(q_ptr + queries, mask=rows[:, None] < seq, other=0.0)
    dout = tl.load(dout_ptr + queries, mask=rows[:, None] < seq, other=0.0)
    out = tl.load(out_ptr + queries, mask=rows[:, None] < seq, other=0.0)
    k = tl.load(k_ptr + keys, mask=cols[:, None] < seq, other=0.0)
    v = tl.load(v_ptr + keys, mask=cols[:, None] < seq, other=0.0)
    lse = tl.load(lse_ptr + head * seq + rows, mask=rows < seq, other=0.0)
    seen = (rows[:, None] < seq) & (cols[None, :] < seq)
    inside = seen
    if CAUSAL:
        seen = seen & (rows[:, None] >= cols[None, :])
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    p = tl.exp(tl.where(seen, scores - lse[:, None], -float("inf")))
    row_sums = tl.sum(out.to(tl.float32) * dout.to(tl.float32), axis=1)
    ds = p * (tl.dot(dout, tl.trans(v), input_precision="ieee") - row_sums[:, None])
    at = head * seq * seq + rows[:, None] * seq + cols[None, :]
    tl.store(p_ptr + at, p, mask=inside)
    tl.store(ds_ptr + at, ds, mask=inside)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, seq, scale, stride_row, stride_col, D_HEAD: tl.constexpr, BLOCK: tl.constexpr):
    head, dims = tl.program_id(1), tl.arange(0, D_HEAD)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    own = (head * seq + rows)[:, None] * D_HEAD + dims[None, :]
    total = tl.zeros((BLOCK, D_HEAD), tl.float32)
    for start in range(0, seq, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        at = head * seq * seq + rows[:, None] * stride_row + cols[None, :] * stride_col
        a = tl.load(a_ptr + at, mask=(rows[:, None] < seq) & (cols[None, :] < seq), other=0.0)
        b = tl.load(b_ptr + (head * seq + cols)[:, None] * D_HEAD + dims[None, :], mask=cols[:, None] < seq, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + own, total * scale, mask=rows[:, None] < seq)


def attention_backward(q, k, v, out, lse, dout, causal=True, block_m=32, block_n=32):
    n_heads, seq, d_head = q.shape
    p, ds = q.new_empty(n_heads, seq, seq), q.new_empty(n_heads, seq, seq)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    scale = d_head**-0.5
    pairs_kernel[(triton.cdiv(seq, block_m), triton.cdiv(seq, block_n), n_heads)](
        *(q, k, v, out, lse, dout, p, ds, seq, scale),
        **{"CAUSAL": causal, "D_HEAD": d_head, "BLOCK_M": block_m, "BLOCK_N": block_n},
    )
    grid = (triton.cdiv(seq, 16), n_heads)
    product_kernel[grid](ds, k, dq, seq, scale, seq, 1, D_HEAD=d_head, BLOCK=16)
    product_kernel[grid](ds, q, dk, seq, scale, 1, seq, D_HEAD=d_head, BLOCK=16)
    product_kernel[grid](p, dout, dv, seq, 1.0, 1, seq, D_HEAD=d_head, BLOCK=16)
    return dq, dk, dv
