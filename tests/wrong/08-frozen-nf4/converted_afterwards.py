# hint: A weight was unpacked in another dtype than that of x
class FrozenNF4Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, packed, scales, dequantize):
        ctx.save_for_backward(packed, scales)
        ctx.dequantize = dequantize
        return x @ dequantize(packed, scales, torch.float32).to(x.dtype).T

    @staticmethod
    def backward(ctx, grad_y):
        packed, scales = ctx.saved_tensors
        return grad_y @ ctx.dequantize(packed, scales, grad_y.dtype), None, None, None
