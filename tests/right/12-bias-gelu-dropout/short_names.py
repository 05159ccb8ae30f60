# names of a letter or two
@triton.jit
def bias_gelu_dropout_forward_kernel(
    x_ptr, y_ptr, bias_ptr, out_ptr, n, n_cols, p, seed, BLOCK_SIZE: tl.constexpr
):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    y = tl.load(y_ptr + offs, mask=mask, other=0.0)
    a = x + tl.load(bias_ptr + offs % n_cols, mask=mask, other=0.0)
    phi = 0.5 * (1 + tl.erf(a * 0.7071067811865476))
    keep = tl.rand(seed, offs) >= p
    tl.store(out_ptr + offs, y + tl.where(keep, a * phi / (1 - p), 0.0), mask=mask)


@triton.jit
def bias_gelu_dropout_backward_kernel(
    x_ptr, dout_ptr, bias_ptr, dx_ptr, n, n_cols, p, seed, BLOCK_SIZE: tl.constexpr
):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    dout = tl.load(dout_ptr + offs, mask=mask, other=0.0)
    a = x + tl.load(bias_ptr + offs % n_cols, mask=mask, other=0.0)
    phi = 0.5 * (1 + tl.erf(a * 0.7071067811865476))
    slope = phi + a * 0.3989422804014327 * tl.exp(-a * a / 2)
    keep = tl.rand(seed, offs) >= p
    tl.store(dx_ptr + offs, tl.where(keep, dout * slope / (1 - p), 0.0), mask=mask)


class BiasGeluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, bias: Tensor, y: Tensor, p: float, seed: int) -> Tensor:
        n, n_cols = x.numel(), x.shape[1]
        out = torch.empty_like(x)
        bias_gelu_dropout_forward_kernel[(triton.cdiv(n, 1024),)](
            x, y, bias, out, n, n_cols, p, seed, BLOCK_SIZE=1024
        )
        ctx.save_for_backward(x, bias)
        ctx.p, ctx.seed = p, seed
        return out

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple:
        x, bias = ctx.saved_tensors
        dout = dout.contiguous()
        n, n_cols = x.numel(), x.shape[1]
        dx = torch.empty_like(x)
        bias_gelu_dropout_backward_kernel[(triton.cdiv(n, 1024),)](
            x, dout, bias, dx, n, n_cols, ctx.p, ctx.seed, BLOCK_SIZE=1024
        )
        return dx, dx.sum(0), dout, None, None


def bias_gelu_dropout(x: Tensor, bias: Tensor, y: Tensor, p: float, seed: int) -> Tensor:
    return BiasGeluDropout.apply(x, bias, y, p, seed)
