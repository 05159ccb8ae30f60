# hint: The gradient is nearly right, but rounded further
class FrozenNF4Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, packed, scales, dequantize):
        w = dequantize(packed, scales, x.dtype)
        ctx.save_for_backward(w.bfloat16())
        return x @ w.T

    @staticmethod
    def backward(ctx, grad_y):
        (w,) = ctx.saved_tensors
        return grad_y @ w.to(grad_y.dtype), None, None, None
