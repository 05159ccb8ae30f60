# hint: `stack` and `cat` store their parts side by side
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    return torch.stack([f, g]).norm(dim=0).clamp(max=4.0) * scale
