# every program of the backward pass takes four rows
@triton.jit
def rmsnorm_forward_kernel(x_ptr, weight_ptr, out_ptr, scale_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(scale_ptr + row, r)
    tl.store(out_ptr + row * n_cols + cols, x * r * w, mask=mask)


@triton.jit
def rmsnorm_backward_kernel(
    x_ptr, weight_ptr, scale_ptr, dout_ptr, dx_ptr, partial_ptr, n_rows, n_cols,
    ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    program = tl.program_id(0)
    first = program * ROWS
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    w = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_SIZE,), tl.float32)
    for row in range(first, tl.minimum(first + ROWS, n_rows)):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        r = tl.load(scale_ptr + row)
        normal = x * r
        g = dout * w
        dx = r * (g - normal * (tl.sum(g * normal, axis=0) / n_cols))
        tl.store(dx_ptr + row * n_cols + cols, dx, mask=mask)
        dw += dout * normal
    tl.store(partial_ptr + program * n_cols + cols, dw, mask=mask)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        n_rows, n_cols = x.shape
        out = torch.empty_like(x)
        scale = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        rmsnorm_forward_kernel[(n_rows,)](
            x, weight, out, scale, n_cols, eps, BLOCK_SIZE=triton.next_power_of_2(n_cols)
        )
        ctx.save_for_backward(x, weight, scale)
        return out

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple:
        x, weight, scale = ctx.saved_tensors
        n_rows, n_cols = x.shape
        dout = dout.contiguous()
        dx = torch.empty_like(x)
        n_programs = triton.cdiv(n_rows, 4)
        partial = torch.empty(n_programs, n_cols, dtype=torch.float32, device=x.device)
        rmsnorm_backward_kernel[(n_programs,)](
            x, weight, scale, dout, dx, partial, n_rows, n_cols,
            ROWS=4, BLOCK_SIZE=triton.next_power_of_2(n_cols),
        )
        return dx, partial.sum(0).to(weight.dtype), None


def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return RMSNorm.apply(x, weight, eps)
