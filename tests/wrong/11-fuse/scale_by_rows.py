# hint: belongs to the last dimension as it is
def fused(x, y, scale):
    return torch.hypot(F.silu(x), torch.where(y < 0, 0.1 * y, y)).clamp(max=4.0) * scale[:, None]
