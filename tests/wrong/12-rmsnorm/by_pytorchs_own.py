# hint: PyTorch computes a part of the result
def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean of x's squares + eps) * weight, row by row, with gradients for x and weight."""
    return F.rms_norm(x, weight.shape, weight, eps)
