# hint: The weight in full precision stays alive
cache = {}


class FrozenNF4Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, packed, scales, dequantize):
        ctx.key = (packed.data_ptr(), packed.shape, x.dtype)
        cache[ctx.key] = dequantize(packed, scales, x.dtype)
        return x @ cache[ctx.key].T

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y @ cache[ctx.key], None, None, None
