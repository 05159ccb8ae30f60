# hint: `stack` and `cat` store their parts side by side
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    size = torch.hypot(f, g)
    return torch.stack([size, torch.full_like(size, 4.0)]).amin(0) * scale
