# hint: Something is read more often than necessary
@triton.jit
def three_pass_softmax_kernel(out_ptr, x_ptr, stride_out, stride_x, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    maximum = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        maximum = tl.maximum(maximum, x)
    top = tl.max(maximum, axis=0)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - top)
    scale = 1 / tl.sum(total, axis=0)
    for start in range(0, n_cols, BLOCK_SIZE):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * stride_out + start + cols, tl.exp(x - top) * scale, mask=mask)


def softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype)
    three_pass_softmax_kernel[(x.shape[0],)](out, x, out.stride(0), x.stride(0), x.shape[1], BLOCK_SIZE=64)
    return out
