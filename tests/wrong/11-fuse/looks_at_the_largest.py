# hint: A Python `if` needs a value
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    size = torch.hypot(f, g)
    if size.max() > 4:
        size = size.clamp(max=4.0)
    return size * scale
