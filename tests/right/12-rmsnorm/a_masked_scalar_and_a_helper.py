# rows past the end are masked, their scale by a scalar mask with other=0.0; a helper computes one row
@triton.jit
def rmsnorm_forward_kernel(
    x_ptr, weight_ptr, out_ptr, scale_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(scale_ptr + row, scale)
    tl.store(out_ptr + row * n_cols + cols, x * scale * weight, mask=mask)


@triton.jit
def row_gradients(x, dout, weight, scale, n_cols):
    x_hat = x * scale
    along = tl.sum(dout * weight * x_hat, axis=0) / n_cols
    return scale * (dout * weight - along * x_hat), dout * x_hat


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
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    partial = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for i in range(ROWS):
        row = program * ROWS + i
        inside = mask & (row < n_rows)
        x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(scale_ptr + row, mask=row < n_rows, other=0.0)
        dx, dweight = row_gradients(x, dout, weight, scale, n_cols)
        tl.store(dx_ptr + row * n_cols + cols, dx, mask=inside)
        partial += dweight
    tl.store(partial_ptr + program * n_cols + cols, partial, mask=mask)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """The normalised rows times the weight; keeps x and one float32 a row."""
        n_rows, n_cols = x.shape
        out = torch.empty_like(x)
        scale = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(n_cols)
        rmsnorm_forward_kernel[(n_rows,)](
            x, weight, out, scale, n_cols, eps, BLOCK_SIZE=block, num_warps=8
        )
        ctx.save_for_backward(x, weight, scale)
        return out

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple:
        """The gradients of x and weight, and None for eps."""
        x, weight, scale = ctx.saved_tensors
        n_rows, n_cols = x.shape
        dout = dout.contiguous()
        dx = torch.empty_like(x)
        rows = 8
        options = {"ROWS": rows, "BLOCK_SIZE": triton.next_power_of_2(n_cols), "num_warps": 8}
        n_programs = triton.cdiv(n_rows, rows)
        partial = torch.empty((n_programs, n_cols), dtype=torch.float32, device=x.device)
        rmsnorm_backward_kernel[(n_programs,)](
            x, weight, scale, dout, dx, partial, n_rows, n_cols,
            **options,
        )
        return dx, partial.sum(0).to(weight.dtype), None


def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean of x's squares + eps) * weight, row by row, with gradients for x and weight."""
    return RMSNorm.apply(x, weight, eps)
