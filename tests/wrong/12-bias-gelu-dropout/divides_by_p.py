# hint: divided by 1 - p
@triton.jit
def bias_gelu_dropout_forward_kernel(
    x_ptr, y_ptr, bias_ptr, out_ptr, n, n_cols, p, seed, BLOCK_SIZE: tl.constexpr
):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    y = tl.load(y_ptr + offs, mask=mask)
    a = tl.load(x_ptr + offs, mask=mask) + tl.load(bias_ptr + offs % n_cols, mask=mask)
    phi = 0.5 * (1 + tl.erf(a * 0.7071067811865476))
    gelu = a * phi
    keep = tl.rand(seed, offs) >= p
    tl.store(out_ptr + offs, y + tl.where(keep, gelu / p, 0), mask=mask)


@triton.jit
def bias_gelu_dropout_backward_kernel(
    x_ptr, dout_ptr, bias_ptr, dx_ptr, n, n_cols, p, seed, BLOCK_SIZE: tl.constexpr
):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    dout = tl.load(dout_ptr + offs, mask=mask)
    a = tl.load(x_ptr + offs, mask=mask) + tl.load(bias_ptr + offs % n_cols, mask=mask)
    phi = 0.5 * (1 + tl.erf(a * 0.7071067811865476))
    slope = phi + a * 0.3989422804014327 * tl.exp(-a * a / 2)
    keep = tl.rand(seed, offs) >= p
    tl.store(dx_ptr + offs, tl.where(keep, dout * slope / p, 0), mask=mask)


class BiasGeluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, bias: Tensor, y: Tensor, p: float, seed: int) -> Tensor:
        """y + dropout(gelu(x + bias)); keeps x, bias, p and seed."""
        ctx.save_for_backward(x, bias)
        ctx.p, ctx.seed = p, seed
        out = torch.empty_like(x)
        n, block_size = x.numel(), 512
        bias_gelu_dropout_forward_kernel[(triton.cdiv(n, block_size),)](
            x, y, bias, out, n, x.shape[1], p, seed, BLOCK_SIZE=block_size
        )
        return out

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple:
        """The gradients of x, bias and y, and None for p and seed."""
        x, bias = ctx.saved_tensors
        dx = torch.empty_like(x)
        n, block_size = x.numel(), 512
        bias_gelu_dropout_backward_kernel[(triton.cdiv(n, block_size),)](
            x, dout.contiguous(), bias, dx, n, x.shape[1], ctx.p, ctx.seed, BLOCK_SIZE=block_size
        )
        return dx, dx.sum(0), dout, None, None


def bias_gelu_dropout(x: Tensor, bias: Tensor, y: Tensor, p: float, seed: int) -> Tensor:
    """y + dropout(gelu(x + bias), p), the mask drawn from seed; gradients for x, bias and y."""
    return BiasGeluDropout.apply(x, bias, y, p, seed)
