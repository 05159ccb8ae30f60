# hint: Keep to the values of `chain`
def fused(x, y, scale):
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    return (f + g).clamp(max=4.0) * scale
