# hint: Work on a copy
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    y.copy_(torch.where(y < 0, 0.1 * y, y))
    return torch.hypot(f, y).clamp(max=4.0) * scale
