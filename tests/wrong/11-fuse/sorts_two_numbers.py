# hint: A sort is a library's call
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    size = torch.hypot(f, g)
    return torch.stack([size, torch.full_like(size, 4.0)]).sort(0).values[0] * scale
