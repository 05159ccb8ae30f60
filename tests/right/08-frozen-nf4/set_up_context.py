class FrozenNF4Linear(torch.autograd.Function):
    @staticmethod
    def forward(x, packed, scales, dequantize):
        return torch.einsum("...i,oi->...o", x, dequantize(packed, scales, x.dtype))

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, packed, scales, ctx.dequantize = inputs
        ctx.save_for_backward(packed, scales)

    @staticmethod
    def backward(ctx, grad_y):
        if not ctx.needs_input_grad[0]:
            return (None,) * 4
        weight = ctx.dequantize(*ctx.saved_tensors, grad_y.dtype)
        return (torch.matmul(grad_y, weight), None, None, None)
