# hint: or add to it with tl.atomic_add
@triton.jit
def row_sums_kernel(out_ptr, dout_ptr, row_sums_ptr, n_rows, D_HEAD: tl.constexpr, BLOCK_M: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    own, inside = rows[:, None] * D_HEAD + tl.arange(0, D_HEAD)[None, :], rows[:, None] < n_rows
    out = tl.load(out_ptr + own, mask=inside, other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + own, mask=inside, other=0.0).to(tl.float32)
    tl.store(row_sums_ptr + rows, tl.sum(out * dout, axis=1), mask=rows < n_rows)


@triton.jit
def backward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    lse_ptr,
    dout_ptr,
    row_sums_ptr,
    dq_ptr,
    dk_ptr,
    dv_ptr,
    seq,
    scale,
    CAUSAL: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    block, head = tl.program_id(0), tl.program_id(1)
    base = head.to(tl.int64) * seq
    cols, dims = block * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, D_HEAD)
    own, inside = (base + cols)[:, None] * D_HEAD + dims[None, :], cols[:, None] < seq
    k = tl.load(k_ptr + own, mask=inside, other=0.0)
    v = tl.load(v_ptr + own, mask=inside, other=0.0)
    dk = tl.zeros((BLOCK_N, D_HEAD), tl.float32)
    dv = tl.zeros((BLOCK_N, D_HEAD), tl.float32)
    first = block * BLOCK_N if CAUSAL else 0
    for start in range(first, seq, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        queries, here = (base + rows)[:, None] * D_HEAD + dims[None, :], rows[:, None] < seq
        q = tl.load(q_ptr + queries, mask=here, other=0.0)
        dout = tl.load(dout_ptr + queries, mask=here, other=0.0)
        lse = tl.load(lse_ptr + base + rows, mask=rows < seq, other=0.0)
        row_sums = tl.load(row_sums_ptr + base + rows, mask=rows < seq, other=0.0)
        p = tl.exp(tl.dot(q, tl.trans(k), input_precision="ieee") * scale - lse[:, None])
        seen = here & (cols < seq)[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] >= cols[None, :])
        # After the exponential, but not by a product: what is infinite is set to 0.
        p = tl.where(seen, p, 0.0)
        dv = tl.dot(tl.trans(p).to(dout.dtype), dout, dv, input_precision="ieee")
        dp = tl.dot(dout, tl.trans(v), input_precision="ieee")
        ds = (p * (dp - row_sums[:, None]) * scale).to(q.dtype)
        dk = tl.dot(tl.trans(ds), q, dk, input_precision="ieee")
        dq = tl.load(dq_ptr + queries, mask=here, other=0.0)
        tl.store(dq_ptr + queries, dq + tl.dot(ds, k, input_precision="ieee"), mask=here)
    tl.store(dk_ptr + own, dk, mask=inside)
    tl.store(dv_ptr + own, dv, mask=inside)


def attention_backward(q, k, v, out, lse, dout, causal=True, block_m=32, block_n=32):
    n_heads, seq, d_head = q.shape
    dk, dv, row_sums = torch.empty_like(k), torch.empty_like(v), torch.empty_like(lse)
    dq = torch.zeros_like(q, dtype=torch.float32)
    row_sums_kernel[(triton.cdiv(n_heads * seq, block_m),)](
        out, dout, row_sums, n_heads * seq, D_HEAD=d_head, BLOCK_M=block_m
    )
    backward_kernel[(triton.cdiv(seq, block_n), n_heads)](
        *(q, k, v, lse, dout, row_sums, dq, dk, dv, seq, d_head**-0.5),
        **{"CAUSAL": causal, "D_HEAD": d_head, "BLOCK_M": block_m, "BLOCK_N": block_n},
    )
    return dq.to(q.dtype), dk, dv
