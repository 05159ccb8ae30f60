# hint: The result has another dtype than x
class FrozenNF4Linear(torch.autograd.Function):
    """x @ weight.T, where the weight is packed in 4 bits and never trains."""

    @staticmethod
    def forward(
        ctx,
        x: Float[Tensor, "*rows n_in"],
        packed: UInt8[Tensor, "..."],
        scales: Float32[Tensor, "..."],
        dequantize: Callable[[Tensor, Tensor, torch.dtype], Tensor],
    ) -> Float[Tensor, "*rows n_out"]:
        """dequantize(packed, scales, dtype) gives the weight (n_out, n_in)."""
        ctx.save_for_backward(packed, scales)
        ctx.dequantize = dequantize
        return x.float() @ dequantize(packed, scales, torch.float32).T

    @staticmethod
    def backward(ctx, grad_y: Float[Tensor, "*rows n_out"]):
        """The gradient of each argument of forward; None where there is none."""
        packed, scales = ctx.saved_tensors
        return grad_y.float() @ ctx.dequantize(packed, scales, torch.float32), None, None, None
