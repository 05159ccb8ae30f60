# hint: Values are changed in place in the middle
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    size = torch.hypot(f, g)
    size[size > 4] = 4.0
    return size * scale
