# hint: Something is read more often than it has to be
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
    TILE: tl.constexpr,
    STEP: tl.constexpr,
    PRECISION: tl.constexpr,
):
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, n_inner, STEP):
        k = start + tl.arange(0, STEP)
        a_mask = (offs_m[:, None] < n_rows) & (k[None, :] < n_inner)
        b_mask = (k[:, None] < n_inner) & (offs_n[None, :] < n_cols)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + k[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    c_mask = (offs_m[:, None] < n_rows) & (offs_n[None, :] < n_cols)
    c_ptrs = c_ptr + offs_m[:, None] * n_cols + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=c_mask)


def matmul(a: Tensor, b: Tensor, precision: str = "ieee", tile: int = 64) -> Tensor:
    """The product of a (M, K) and b (K, N), by one launch with a program for each tile of the result."""
    (n_rows, n_inner), n_cols = a.shape, b.shape[1]
    c = torch.empty((n_rows, n_cols), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(n_rows, 16), triton.cdiv(n_cols, 16))
    matmul_kernel[grid](
        *(a, b, c, n_rows, n_cols, n_inner, *a.stride(), *b.stride()),
        TILE=16,
        STEP=32,
        PRECISION=precision,
    )
    return c
