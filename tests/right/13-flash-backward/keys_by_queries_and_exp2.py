# Three launches; tiles of the second kernel are keys by queries, so that nothing is transposed there but loads; exp2.
LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def sums_kernel(o_ptr, do_ptr, sums_ptr, seq, D: tl.constexpr, M: tl.constexpr):
    rows = tl.program_id(1) * M + tl.arange(0, M)
    at = tl.program_id(0) * seq * D + rows[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.load(o_ptr + at, mask=rows[:, None] < seq, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=rows[:, None] < seq, other=0.0).to(tl.float32)
    tl.store(sums_ptr + tl.program_id(0) * seq + rows, tl.sum(o * do, 1), mask=rows < seq)


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, lse_ptr, do_ptr, sums_ptr, dq_ptr, seq, scale, CAUSAL: tl.constexpr, D: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr,
):
    head, block = tl.program_id(0), tl.program_id(1)
    rows, d = block * M + tl.arange(0, M), tl.arange(0, D)
    q_ptr, k_ptr, v_ptr = q_ptr + head * seq * D, k_ptr + head * seq * D, v_ptr + head * seq * D
    at = rows[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=rows[:, None] < seq, other=0.0)
    do = tl.load(do_ptr + head * seq * D + at, mask=rows[:, None] < seq, other=0.0)
    lse = tl.load(lse_ptr + head * seq + rows, mask=rows < seq, other=0.0) * LOG2_E
    sums = tl.load(sums_ptr + head * seq + rows, mask=rows < seq, other=0.0)
    dq = tl.zeros((M, D), tl.float32)
    end = tl.minimum(block * M + M, seq) if CAUSAL else seq
    for first in range(0, end, N):
        cols = first + tl.arange(0, N)
        inside = cols[None, :] < seq
        kt = tl.load(k_ptr + cols[None, :] * D + d[:, None], mask=inside, other=0.0)
        vt = tl.load(v_ptr + cols[None, :] * D + d[:, None], mask=inside, other=0.0)
        if CAUSAL:
            inside = inside & (cols[None, :] <= rows[:, None])
        s = tl.dot(q, kt, input_precision="ieee") * (scale * LOG2_E)
        p = tl.where(inside, tl.exp2(s - lse[:, None]), 0.0)
        ds = p * (tl.dot(do, vt, input_precision="ieee") - sums[:, None])
        dq += tl.dot(ds.to(kt.dtype), tl.trans(kt), input_precision="ieee")
    tl.store(dq_ptr + head * seq * D + at, dq * scale, mask=rows[:, None] < seq)


@triton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, lse_ptr, do_ptr, sums_ptr, dk_ptr, dv_ptr, seq, scale, CAUSAL: tl.constexpr,
    D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):
    head, block = tl.program_id(0), tl.program_id(1)
    cols, d = block * N + tl.arange(0, N), tl.arange(0, D)
    at = head * seq * D + cols[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at, mask=cols[:, None] < seq, other=0.0)
    v = tl.load(v_ptr + at, mask=cols[:, None] < seq, other=0.0)
    dk, dv = tl.zeros((N, D), tl.float32), tl.zeros((N, D), tl.float32)
    for step in range(block * N // M if CAUSAL else 0, tl.cdiv(seq, M)):
        rows = step * M + tl.arange(0, M)
        of_rows = head * seq * D + rows[:, None] * D + d[None, :]
        q = tl.load(q_ptr + of_rows, mask=rows[:, None] < seq, other=0.0)
        do = tl.load(do_ptr + of_rows, mask=rows[:, None] < seq, other=0.0)
        lse = tl.load(lse_ptr + head * seq + rows, mask=rows < seq, other=float("inf")) * LOG2_E
        sums = tl.load(sums_ptr + head * seq + rows, mask=rows < seq, other=0.0)
        st = tl.dot(k, tl.trans(q), input_precision="ieee") * (scale * LOG2_E)
        pt = tl.exp2(st - lse[None, :])
        # No key past the last is stored, so that what is computed for one does not matter.
        if CAUSAL:
            pt = tl.where(cols[:, None] <= rows[None, :], pt, 0.0)
        dv += tl.dot(pt.to(do.dtype), do, input_precision="ieee")
        dst = pt * (tl.dot(v, tl.trans(do), input_precision="ieee") - sums[None, :])
        dk += tl.dot(dst.to(q.dtype), q, input_precision="ieee")
    tl.store(dk_ptr + at, dk * scale, mask=cols[:, None] < seq)
    tl.store(dv_ptr + at, dv, mask=cols[:, None] < seq)


def attention_backward(q, k, v, out, lse, dout, causal=True, block_m=32, block_n=32):
    heads, seq, d = q.shape
    dq, dk, dv, sums = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), torch.empty_like(lse)
    blocks = {"D": d, "M": block_m, "N": block_n}
    of_queries, of_keys = (heads, triton.cdiv(seq, block_m)), (heads, triton.cdiv(seq, block_n))
    sums_kernel[of_queries](out, dout, sums, seq, D=d, M=block_m)
    dq_kernel[of_queries](q, k, v, lse, dout, sums, dq, seq, d**-0.5, CAUSAL=causal, **blocks)
    dkdv_kernel[of_keys](q, k, v, lse, dout, sums, dk, dv, seq, d**-0.5, CAUSAL=causal, **blocks)
    return dq, dk, dv
