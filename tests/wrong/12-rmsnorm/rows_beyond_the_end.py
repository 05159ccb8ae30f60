# hint: outside of its tensors
@triton.jit
def rmsnorm_forward_kernel(
    x_ptr, weight_ptr, out_ptr, scale_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(scale_ptr + row, scale)
    tl.store(out_ptr + row * n_cols + cols, x * scale * weight, mask=mask)


@triton.jit
def rmsnorm_backward_kernel(
    x_ptr,
    weight_ptr,
    scale_ptr,
    dout_ptr,
    dx_ptr,
    partial_ptr,
    n_rows,
    n_cols,
    ROWS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask, other=0).to(tl.float32)
    dweight = tl.zeros((BLOCK_SIZE,), tl.float32)
    for row in range(first, first + ROWS):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0).to(tl.float32)
        dout = tl.load(dout_ptr + row * n_cols + cols, mask=mask, other=0).to(tl.float32)
        scale = tl.load(scale_ptr + row)
        normal = x * scale
        dnormal = dout * weight
        dx = scale * (dnormal - normal * (tl.sum(dnormal * normal, axis=0) / n_cols))
        tl.store(dx_ptr + row * n_cols + cols, dx, mask=mask)
        dweight += dout * normal
    tl.store(partial_ptr + tl.program_id(0) * n_cols + cols, dweight, mask=mask)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """The normalised rows times the weight; keeps x and one float32 a row."""
        n_rows, n_cols = x.shape
        out, scale = torch.empty_like(x), x.new_empty(n_rows, dtype=torch.float32)
        block_size = triton.next_power_of_2(n_cols)
        rmsnorm_forward_kernel[(n_rows,)](x, weight, out, scale, n_cols, eps, BLOCK_SIZE=block_size)
        ctx.save_for_backward(x, weight, scale)
        return out

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple:
        """The gradients of x and weight, and None for eps."""
        x, weight, scale = ctx.saved_tensors
        n_rows, n_cols = x.shape
        # As many programs as an H100 has multiprocessors keep it busy; each has a partial sum to write.
        rows = max(4, triton.cdiv(n_rows, 132))
        n_programs = triton.cdiv(n_rows, rows)
        dx, partial = torch.empty_like(x), x.new_empty(n_programs, n_cols, dtype=torch.float32)
        block_size = triton.next_power_of_2(n_cols)
        rmsnorm_backward_kernel[(n_programs,)](
            *(x, weight, scale, dout.contiguous(), dx, partial, n_rows, n_cols),
            ROWS=rows,
            BLOCK_SIZE=block_size,
        )
        return dx, partial.sum(0).to(weight.dtype), None


def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean of x's squares + eps) * weight, row by row, with gradients for x and weight."""
    return RMSNorm.apply(x, weight, eps)
