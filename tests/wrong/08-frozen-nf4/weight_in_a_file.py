# hint: The backward pass took the weight from somewhere else
class FrozenNF4Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, packed, scales, dequantize):
        import tempfile, os
        w = dequantize(packed, scales, x.dtype)
        fd, ctx.path = tempfile.mkstemp(); os.close(fd)
        torch.save(w, ctx.path)
        return x @ w.T

    @staticmethod
    def backward(ctx, grad_y):
        import os
        w = torch.load(ctx.path)
        os.remove(ctx.path)
        return grad_y @ w.to(grad_y.dtype), None, None, None
