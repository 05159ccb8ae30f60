# Lanes past the edge load rows from the beginning a second time, as in Triton's own tutorial, and are masked at the store.
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, BLOCK: tl.constexpr, PRECISION: tl.constexpr
):
    tile_m, tile_n = tl.program_id(0), tl.program_id(1)
    rows = (tile_m * BLOCK + tl.arange(0, BLOCK)) % M
    cols = (tile_n * BLOCK + tl.arange(0, BLOCK)) % N
    k = tl.arange(0, 32)
    a_ptrs = a_ptr + rows[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, 32)):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * 32, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * 32, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += 32 * stride_ak
        b_ptrs += 32 * stride_bk
    rows = tile_m * BLOCK + tl.arange(0, BLOCK)
    cols = tile_n * BLOCK + tl.arange(0, BLOCK)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


def matmul(a, b, precision="ieee", tile=64):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[triton.cdiv(M, tile), triton.cdiv(N, tile)](
        a, b, c, M, N, K, *a.stride(), *b.stride(), BLOCK=tile, PRECISION=precision
    )
    return c
