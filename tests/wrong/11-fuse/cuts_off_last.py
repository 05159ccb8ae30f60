# hint: The limit of 4 comes before the scale
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    return (torch.hypot(f, g) * scale).clamp(max=4.0)
