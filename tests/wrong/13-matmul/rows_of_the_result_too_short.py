# hint: Elements of the result were never stored
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, n_rows, n_cols, n_inner, stride_am, stride_ak, stride_bk, stride_bn, TILE: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr):
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, n_inner, STEP):
        k = start + tl.arange(0, STEP)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + k[None, :] * stride_ak, mask=(offs_m[:, None] < n_rows) & (k[None, :] < n_inner), other=0.0)
        b = tl.load(b_ptr + k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=(k[:, None] < n_inner) & (offs_n[None, :] < n_cols), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    tl.store(c_ptr + offs_m[:, None] * n_rows + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < n_rows) & (offs_n[None, :] < n_cols))
def matmul(a, b, precision="ieee", tile=64):
    (n_rows, n_inner), n_cols = a.shape, b.shape[1]
    out = torch.empty(n_rows, n_cols, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(n_rows, tile), triton.cdiv(n_cols, tile))
    matmul_kernel[grid](a, b, out, n_rows, n_cols, n_inner, *a.stride(), *b.stride(), TILE=tile, STEP=32, PRECISION=precision)
    return out
