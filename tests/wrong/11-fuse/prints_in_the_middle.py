# hint: The graph ends at the line that the message names
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    print("half way")
    return torch.hypot(f, g).clamp(max=4.0) * scale
