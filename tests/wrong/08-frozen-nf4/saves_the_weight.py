# hint: The weight in full precision stays alive
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
        weight = dequantize(packed, scales, x.dtype)
        ctx.save_for_backward(weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, grad_y: Float[Tensor, "*rows n_out"]):
        """The gradient of each argument of forward; None where there is none."""
        (weight,) = ctx.saved_tensors
        return grad_y @ weight, None, None, None
