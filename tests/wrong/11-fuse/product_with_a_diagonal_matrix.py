# hint: A product with a diagonal matrix
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    return torch.hypot(f, g).clamp(max=4.0) @ torch.diag(scale)
